-- Outcomes of steps, a row per source, industry, client, task and way of carrying it out, weighted by how often the implementation was
-- carried out. What a step took stands in histograms.sql. `observations`: a row per step. A step after a failed predecessor speaks for q,
-- any other for p.
SELECT /*+ BROADCAST(a) */
  s.source, s.industry, s.client, a.task_id, s.actor_kind, s.model, s.actor_group,
  CAST(sum(weight) AS BIGINT) AS implementations, min(seen) AS first_seen, max(seen) AS last_seen,
  CAST(sum(CASE WHEN success IS NOT NULL AND NOT after_failure THEN weight ELSE 0 END) AS BIGINT) AS p_n,
  CAST(sum(CASE WHEN success AND NOT after_failure THEN weight ELSE 0 END) AS BIGINT) AS p_successes,
  CAST(sum(CASE WHEN success IS NOT NULL AND after_failure THEN weight ELSE 0 END) AS BIGINT) AS q_n,
  CAST(sum(CASE WHEN success AND after_failure THEN weight ELSE 0 END) AS BIGINT) AS q_successes,
  CAST(sum(CASE WHEN priced THEN weight ELSE 0 END) AS BIGINT) AS cost_rate_n
FROM observations s
JOIN aliases a ON s.source = a.source AND s.industry IS NOT DISTINCT FROM a.industry AND s.task_key = a.task_key
GROUP BY s.source, s.industry, s.client, a.task_id, s.actor_kind, s.model, s.actor_group
