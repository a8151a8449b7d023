-- LWM (1): consecutive pairs of Task Implementations, a row per source and pair of tasks. A pair counts once a case for `implementations`.
-- `observations`: a row per step and step directly before it, so there is no sort and no window.
WITH cases AS (
  SELECT /*+ BROADCAST(a), BROADCAST(b) */
    p.source, a.task_id AS src, b.task_id AS dst, p.weight, count(*) AS times, min(seen) AS first_seen, max(seen) AS last_seen
  FROM observations p
  JOIN aliases a ON p.source = a.source AND p.industry IS NOT DISTINCT FROM a.industry AND p.src_key = a.task_key
  JOIN aliases b ON p.source = b.source AND p.industry IS NOT DISTINCT FROM b.industry AND p.dst_key = b.task_key
  GROUP BY p.source, p.implementation_id, p.weight, a.task_id, b.task_id
)
SELECT source, src, dst, CAST(sum(times * weight) AS BIGINT) AS transitions, CAST(sum(weight) AS BIGINT) AS implementations,
  min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM cases
GROUP BY source, src, dst
