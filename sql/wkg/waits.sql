-- Waiting time before a task, a row per source, pair of tasks, way in which the later one was done, and bin (opus_pipelines/wkg/estimates/
-- histograms.py): from the end of the earlier task to the start of the later one, in microseconds. `with_work`: the later task has no known
-- duration, as in logs that only record completions, so that its work is part of the time between the two.
WITH pairs AS (
  SELECT source, industry, weight,
    inline(flatten(transform(tasks, (t, i) -> transform(
      array_distinct(coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>)))),
      j -> named_struct(
        'src_key', get(tasks, j).task_key, 'dst_key', t.task_key,
        'actor_kind', t.actor_kind, 'model', t.model, 'actor_group', t.actor_group, 'with_work', t.duration_ms IS NULL,
        'value', try_cast(IF(t.predecessors IS NULL AND t.wait_ms IS NOT NULL, round(t.wait_ms * 1000),
          -- greatest(0, x) would turn an unknown x into 0
          IF(t.started_at < get(tasks, j).ended_at, 0, unix_micros(t.started_at) - unix_micros(get(tasks, j).ended_at))) AS BIGINT))))))
  FROM implementations
), measured AS (
  SELECT /*+ BROADCAST(a), BROADCAST(b) */
    p.source, a.task_id AS src, b.task_id AS dst, p.actor_kind, p.model, p.actor_group, p.with_work, p.weight, p.value
  FROM pairs p
  JOIN aliases a ON p.source = a.source AND p.industry <=> a.industry AND p.src_key = a.task_key
  JOIN aliases b ON p.source = b.source AND p.industry <=> b.industry AND p.dst_key = b.task_key
  WHERE p.value IS NOT NULL
), guessed AS (
  -- The logarithm may be off by its last digit at a border: the exact borders decide.
  SELECT *, IF(value < 1, -1, least(CAST(floor(32 * log2(value)) AS INT), 2015)) AS guess,
    CAST(split(:borders, ',') AS ARRAY<BIGINT>) AS borders
  FROM measured
), binned AS (
  SELECT *, CASE
    WHEN guess < 0 THEN guess
    WHEN value < get(borders, guess) THEN guess - 1
    WHEN value >= get(borders, guess + 1) THEN guess + 1
    ELSE guess END AS bin
  FROM guessed
)
SELECT source, src, dst, actor_kind, model, actor_group, with_work, bin,
  sum(weight) AS count, sum(CAST(value AS DECIMAL(20, 0)) * weight) AS sum, min(value) AS value_min, max(value) AS value_max
FROM binned
GROUP BY source, src, dst, actor_kind, model, actor_group, with_work, bin
