-- What a step came to behind the step directly before it: a row per source, pair of tasks, way in which the later one was done, and fold.
-- Pairs are those of edges.sql. p and q are told apart as in ways.sql, by all predecessors of the later step. Sums are exact: of microseconds
-- and of millionths of a dollar. A fold is a fifth of the cases, so that figures can be judged on cases that they were not
-- made from. It is that of the case's own id, so that a history has the same folds in one source as in many.
WITH pairs AS (
  SELECT case_id, source, industry, weight,
    inline(flatten(transform(tasks, (t, i) -> transform(
      array_distinct(coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>)))),
      j -> named_struct(
        'src_key', get(tasks, j).task_key, 'dst_key', t.task_key,
        'actor_kind', t.actor_kind, 'model', t.model, 'actor_group', t.actor_group, 'success', t.success,
        'duration', try_cast(round(t.duration_ms * 1000) AS BIGINT), 'cost', try_cast(round(t.cost_usd * 1000000) AS BIGINT),
        'after_failure', coalesce(exists(
          coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>))),
          k -> NOT get(tasks, k).success), false))))))
  FROM implementations
)
SELECT /*+ BROADCAST(a), BROADCAST(b) */
  p.source, a.task_id AS src, b.task_id AS dst, p.actor_kind, p.model, p.actor_group,
  CAST(pmod(crc32(CAST(p.case_id AS BINARY)), 5) AS INT) AS fold,
  sum(weight) AS count,
  sum(IF(success IS NOT NULL AND NOT after_failure, weight, 0)) AS p_n,
  sum(IF(success AND NOT after_failure, weight, 0)) AS p_successes,
  sum(IF(success IS NOT NULL AND after_failure, weight, 0)) AS q_n,
  sum(IF(success AND after_failure, weight, 0)) AS q_successes,
  sum(IF(duration IS NOT NULL, weight, 0)) AS duration_n,
  coalesce(sum(CAST(duration AS DECIMAL(20, 0)) * weight), 0) AS duration_sum,
  sum(IF(cost IS NOT NULL, weight, 0)) AS cost_n,
  coalesce(sum(CAST(cost AS DECIMAL(20, 0)) * weight), 0) AS cost_sum
FROM pairs p
JOIN aliases a ON p.source = a.source AND p.industry <=> a.industry AND p.src_key = a.task_key
JOIN aliases b ON p.source = b.source AND p.industry <=> b.industry AND p.dst_key = b.task_key
GROUP BY p.source, a.task_id, b.task_id, p.actor_kind, p.model, p.actor_group, fold
