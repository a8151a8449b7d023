-- What a step came to behind the step directly before it: a row per source, pair of tasks, way in which the later one was done, and fold.
-- Pairs are those of edges.sql. p and q are told apart as in ways.sql, by all predecessors of the later step. Sums are exact: of microseconds
-- and of millionths of a dollar. A fold is a fifth of the cases, so that figures can be judged on cases that they were not
-- made from. It is that of the case's own id, so that a history has the same folds in one source as in many.
WITH valued AS (
  SELECT *, TRY_CAST(round(duration_ms * 1000) AS BIGINT) AS duration, TRY_CAST(round(cost_usd * 1000000) AS BIGINT) AS cost
  FROM observations
)
SELECT /*+ BROADCAST(a), BROADCAST(b) */
  p.source, a.task_id AS src, b.task_id AS dst, p.actor_kind, p.model, p.actor_group, p.fold,
  CAST(sum(weight) AS BIGINT) AS count,
  CAST(sum(CASE WHEN success IS NOT NULL AND NOT after_failure THEN weight ELSE 0 END) AS BIGINT) AS p_n,
  CAST(sum(CASE WHEN success AND NOT after_failure THEN weight ELSE 0 END) AS BIGINT) AS p_successes,
  CAST(sum(CASE WHEN success IS NOT NULL AND after_failure THEN weight ELSE 0 END) AS BIGINT) AS q_n,
  CAST(sum(CASE WHEN success AND after_failure THEN weight ELSE 0 END) AS BIGINT) AS q_successes,
  CAST(sum(CASE WHEN duration IS NOT NULL THEN weight ELSE 0 END) AS BIGINT) AS duration_n,
  coalesce(sum(CAST(duration AS DECIMAL(19, 0)) * CAST(weight AS DECIMAL(19, 0))), 0) AS duration_sum,
  CAST(sum(CASE WHEN cost IS NOT NULL THEN weight ELSE 0 END) AS BIGINT) AS cost_n,
  coalesce(sum(CAST(cost AS DECIMAL(19, 0)) * CAST(weight AS DECIMAL(19, 0))), 0) AS cost_sum
FROM valued p
JOIN aliases a ON p.source = a.source AND p.industry IS NOT DISTINCT FROM a.industry AND p.src_key = a.task_key
JOIN aliases b ON p.source = b.source AND p.industry IS NOT DISTINCT FROM b.industry AND p.dst_key = b.task_key
GROUP BY p.source, a.task_id, b.task_id, p.actor_kind, p.model, p.actor_group, p.fold
