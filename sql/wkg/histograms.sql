-- Measures of tasks, a row per source, way of carrying a task out, measure and bin (opus_pipelines/wkg/estimates/figures.py). Sums are exact:
-- of microseconds and of millionths, weighted by how often the implementation was carried out. Only :binned measures have bins.
-- `observations`: a row per step and known measure.
WITH measured AS (
  SELECT /*+ BROADCAST(a) */ s.source, a.task_id, s.actor_kind, s.model, s.actor_group, s.weight, s.measure, s.value
  FROM observations s
  JOIN aliases a ON s.source = a.source AND s.industry IS NOT DISTINCT FROM a.industry AND s.task_key = a.task_key
), guessed AS (
  -- The logarithm may be off by its last digit at a border: the exact borders decide.
  SELECT *, CASE WHEN NOT array_contains(:binned, measure) THEN NULL WHEN value < 1 THEN -1
    ELSE least(CAST(floor(32 * log2(value)) AS INT), 2015) END AS guess
  FROM measured
), binned AS (
  SELECT *, CASE
    WHEN guess < 0 THEN guess
    WHEN value < get(:borders, guess) THEN guess - 1
    WHEN value >= get(:borders, guess + 1) THEN guess + 1
    ELSE guess END AS bin
  FROM guessed
)
SELECT source, task_id, actor_kind, model, actor_group, measure, bin, CAST(sum(weight) AS BIGINT) AS count,
  sum(CAST(value AS DECIMAL(19, 0)) * CAST(weight AS DECIMAL(19, 0))) AS sum, min(value) AS value_min, max(value) AS value_max
FROM binned
GROUP BY source, task_id, actor_kind, model, actor_group, measure, bin
