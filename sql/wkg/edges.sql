-- LWM (1): consecutive pairs of Task Implementations, a row per source and pair of tasks. Pairs are taken inside the nested
-- list, by position or by `predecessors`, so there is no sort and no window; a pair counts once a case for `implementations`.
WITH pairs AS (
  SELECT implementation_id, source, industry, weight,
    inline(flatten(transform(tasks, (t, i) -> transform(
      array_distinct(coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>)))),
      j -> named_struct(
        'src_key', get(tasks, j).task_key, 'dst_key', t.task_key,
        'seen', coalesce(t.started_at, t.ended_at))))))
  FROM implementations
), cases AS (
  SELECT /*+ BROADCAST(a), BROADCAST(b) */
    p.source, a.task_id AS src, b.task_id AS dst, p.weight, count(*) AS times,
    min(seen) AS first_seen, max(seen) AS last_seen
  FROM pairs p
  JOIN aliases a ON p.source = a.source AND p.industry <=> a.industry AND p.src_key = a.task_key
  JOIN aliases b ON p.source = b.source AND p.industry <=> b.industry AND p.dst_key = b.task_key
  GROUP BY p.source, p.implementation_id, p.weight, a.task_id, b.task_id
)
SELECT source, src, dst, sum(times * weight) AS transitions, sum(weight) AS implementations,
  min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM cases
GROUP BY source, src, dst
