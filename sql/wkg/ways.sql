-- Outcomes of steps, a row per source, industry, client, task and way of carrying it out, weighted by how often the implementation was
-- carried out. What a step took stands in histograms.sql.
WITH steps AS (
  SELECT source, industry, client, weight,
    inline(transform(tasks, (t, i) -> named_struct(
      'task_key', t.task_key, 'actor_kind', t.actor_kind, 'model', t.model, 'actor_group', t.actor_group, 'success', t.success,
      'seen', coalesce(t.started_at, t.ended_at),
      'priced', t.cost_usd IS NOT NULL AND t.cost_basis = 'rate',
      -- A predecessor that is not known to have failed counts as right: the step then speaks for p, else for q.
      'after_failure', coalesce(exists(
        coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>))),
        j -> NOT get(tasks, j).success), false)
    )))
  FROM implementations
)
SELECT /*+ BROADCAST(a) */
  s.source, s.industry, s.client, a.task_id, s.actor_kind, s.model, s.actor_group,
  sum(weight) AS implementations, min(seen) AS first_seen, max(seen) AS last_seen,
  sum(IF(success IS NOT NULL AND NOT after_failure, weight, 0)) AS p_n,
  sum(IF(success AND NOT after_failure, weight, 0)) AS p_successes,
  sum(IF(success IS NOT NULL AND after_failure, weight, 0)) AS q_n,
  sum(IF(success AND after_failure, weight, 0)) AS q_successes,
  sum(IF(priced, weight, 0)) AS cost_rate_n
FROM steps s JOIN aliases a ON s.source = a.source AND s.industry <=> a.industry AND s.task_key = a.task_key
GROUP BY s.source, s.industry, s.client, a.task_id, s.actor_kind, s.model, s.actor_group
