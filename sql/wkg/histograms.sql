-- Measures of tasks, a row per source, way of carrying a task out, measure and bin (opus_pipelines/wkg/histograms.py). Sums are exact: of
-- microseconds and of millionths, weighted by how often the implementation was carried out. Only :binned measures have bins.
WITH steps AS (
  SELECT source, industry, weight, inline(tasks) FROM implementations
), measured AS (
  SELECT /*+ BROADCAST(a) */ s.source, a.task_id, s.actor_kind, s.model, s.actor_group, s.weight,
    stack(10,
      'duration', try_cast(round(s.duration_ms * 1000) AS BIGINT),
      'wait', try_cast(round(s.wait_ms * 1000) AS BIGINT),
      'cost', try_cast(round(s.cost_usd * 1000000) AS BIGINT),
      'compute', try_cast(round(s.cost_compute_usd * 1000000) AS BIGINT),
      'model', try_cast(round(s.cost_model_usd * 1000000) AS BIGINT),
      'human', try_cast(round(s.cost_human_usd * 1000000) AS BIGINT),
      'tokens_in', s.tokens_in,
      'tokens_out', s.tokens_out,
      'memory', try_cast(round(s.memory_gb * 1000000) AS BIGINT),
      'threads', try_cast(round(s.threads * 1000000) AS BIGINT)
    ) AS (measure, value)
  FROM steps s JOIN aliases a ON s.source = a.source AND s.industry <=> a.industry AND s.task_key = a.task_key
), guessed AS (
  -- The logarithm may be off by its last digit at a border: the exact borders decide.
  SELECT *, IF(NOT array_contains(split(:binned, ','), measure), NULL, IF(value < 1, -1,
    least(CAST(floor(32 * log2(value)) AS INT), 2015))) AS guess,
    CAST(split(:borders, ',') AS ARRAY<BIGINT>) AS borders
  FROM measured WHERE value IS NOT NULL
), binned AS (
  SELECT *, CASE
    WHEN guess < 0 THEN guess
    WHEN value < get(borders, guess) THEN guess - 1
    WHEN value >= get(borders, guess + 1) THEN guess + 1
    ELSE guess END AS bin
  FROM guessed
)
SELECT source, task_id, actor_kind, model, actor_group, measure, bin,
  sum(weight) AS count, sum(CAST(value AS DECIMAL(20, 0)) * weight) AS sum, min(value) AS value_min, max(value) AS value_max
FROM binned
GROUP BY source, task_id, actor_kind, model, actor_group, measure, bin
