-- Distinct sequences of raw keys, a row per source, client, kind of case and sequence. A case has one sequence, so summing again
-- after keys became tasks counts no case twice. Outcomes count where success was the right one. `observations`: a row per case.
SELECT source, industry, client, kind_of_case, task_keys, predecessors, CAST(sum(weight) AS BIGINT) AS implementations,
  CAST(sum(CASE WHEN known THEN weight ELSE 0 END) AS BIGINT) AS success_known,
  CAST(sum(CASE WHEN known AND success THEN weight ELSE 0 END) AS BIGINT) AS successes
FROM observations
GROUP BY source, industry, client, kind_of_case, task_keys, predecessors
