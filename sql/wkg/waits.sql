-- Waiting time before a task, a row per source, pair of tasks, way in which the later one was done, and bin
-- (opus_pipelines/wkg/estimates/figures.py): from the end of the earlier task to the start of the later one, in microseconds, or as the
-- source states it. `with_work`: the later task has no known duration, as in logs that only record completions, so that its work is
-- part of the time between the two. `observations`: a row per step and step directly before it.
WITH valued AS (
  SELECT *, TRY_CAST(CASE WHEN stated_wait_ms IS NULL THEN CAST(gap_us AS DOUBLE) ELSE round(stated_wait_ms * 1000) END AS BIGINT) AS value
  FROM observations
), measured AS (
  SELECT /*+ BROADCAST(a), BROADCAST(b) */
    p.source, a.task_id AS src, b.task_id AS dst, p.actor_kind, p.model, p.actor_group, p.with_work, p.weight, p.value
  FROM valued p
  JOIN aliases a ON p.source = a.source AND p.industry IS NOT DISTINCT FROM a.industry AND p.src_key = a.task_key
  JOIN aliases b ON p.source = b.source AND p.industry IS NOT DISTINCT FROM b.industry AND p.dst_key = b.task_key
  WHERE p.value IS NOT NULL
), guessed AS (
  -- The logarithm may be off by its last digit at a border: the exact borders decide.
  SELECT *, CASE WHEN value < 1 THEN -1 ELSE least(CAST(floor(32 * log2(value)) AS INT), 2015) END AS guess
  FROM measured
), binned AS (
  SELECT *, CASE
    WHEN guess < 0 THEN guess
    WHEN value < get(:borders, guess) THEN guess - 1
    WHEN value >= get(:borders, guess + 1) THEN guess + 1
    ELSE guess END AS bin
  FROM guessed
)
SELECT source, src, dst, actor_kind, model, actor_group, with_work, bin, CAST(sum(weight) AS BIGINT) AS count,
  sum(CAST(value AS DECIMAL(19, 0)) * CAST(weight AS DECIMAL(19, 0))) AS sum, min(value) AS value_min, max(value) AS value_max
FROM binned
GROUP BY source, src, dst, actor_kind, model, actor_group, with_work, bin
