-- Task statistics, a row per source, task and way of carrying it out. Sums are exact: decimals of microseconds and of
-- millionths, weighted by how often the implementation was carried out.
WITH steps AS (
  SELECT source, industry, client, weight,
    inline(transform(tasks, (t, i) -> named_struct(
      'task_key', t.task_key, 'actor_kind', t.actor_kind, 'model', t.model, 'success', t.success,
      'seen', coalesce(t.started_at, t.ended_at),
      'duration', CAST(round(t.duration_ms * 1000) AS DECIMAL(20, 0)),
      'wait', CAST(round(t.wait_ms * 1000) AS DECIMAL(20, 0)),
      'cost', CAST(round(t.cost_usd * 1000000) AS DECIMAL(20, 0)),
      'cost_basis', t.cost_basis,
      'compute', CAST(round(t.cost_compute_usd * 1000000) AS DECIMAL(20, 0)),
      'model_cost', CAST(round(t.cost_model_usd * 1000000) AS DECIMAL(20, 0)),
      'human', CAST(round(t.cost_human_usd * 1000000) AS DECIMAL(20, 0)),
      'tokens_in', CAST(t.tokens_in AS DECIMAL(20, 0)), 'tokens_out', CAST(t.tokens_out AS DECIMAL(20, 0)),
      'memory', CAST(round(t.memory_gb * 1000000) AS DECIMAL(20, 0)),
      'threads', CAST(round(t.threads * 1000000) AS DECIMAL(20, 0)),
      -- A predecessor that is not known to have failed counts as right: the step then speaks for p, else for q.
      'after_failure', coalesce(exists(
        coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>))),
        j -> NOT get(tasks, j).success), false)
    )))
  FROM implementations
)
SELECT /*+ BROADCAST(a) */
  s.source, s.industry, s.client, a.task_id, s.actor_kind, s.model,
  sum(weight) AS implementations, min(seen) AS first_seen, max(seen) AS last_seen,
  sum(IF(success IS NOT NULL AND NOT after_failure, weight, 0)) AS p_n,
  sum(IF(success AND NOT after_failure, weight, 0)) AS p_successes,
  sum(IF(success IS NOT NULL AND after_failure, weight, 0)) AS q_n,
  sum(IF(success AND after_failure, weight, 0)) AS q_successes,
  sum(duration * weight) AS duration_sum, sum(IF(duration IS NOT NULL, weight, 0)) AS duration_n,
  min(duration) AS duration_min, max(duration) AS duration_max,
  sum(wait * weight) AS wait_sum, sum(IF(wait IS NOT NULL, weight, 0)) AS wait_n,
  sum(cost * weight) AS cost_sum, sum(IF(cost IS NOT NULL, weight, 0)) AS cost_n,
  min(cost) AS cost_min, max(cost) AS cost_max,
  sum(IF(cost IS NOT NULL AND cost_basis = 'rate', weight, 0)) AS cost_rate_n,
  sum(compute * weight) AS compute_sum, sum(IF(compute IS NOT NULL, weight, 0)) AS compute_n,
  sum(model_cost * weight) AS model_sum, sum(IF(model_cost IS NOT NULL, weight, 0)) AS model_n,
  sum(human * weight) AS human_sum, sum(IF(human IS NOT NULL, weight, 0)) AS human_n,
  sum(tokens_in * weight) AS tokens_in_sum, sum(IF(tokens_in IS NOT NULL, weight, 0)) AS tokens_in_n,
  sum(tokens_out * weight) AS tokens_out_sum, sum(IF(tokens_out IS NOT NULL, weight, 0)) AS tokens_out_n,
  sum(memory * weight) AS memory_sum, sum(IF(memory IS NOT NULL, weight, 0)) AS memory_n,
  sum(threads * weight) AS threads_sum, sum(IF(threads IS NOT NULL, weight, 0)) AS threads_n
FROM steps s JOIN aliases a ON s.source = a.source AND s.industry <=> a.industry AND s.task_key = a.task_key
GROUP BY s.source, s.industry, s.client, a.task_id, s.actor_kind, s.model
