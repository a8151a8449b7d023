WITH steps AS (
  SELECT source, industry, weight, inline(tasks) FROM implementations
), measured AS (
  SELECT source, industry, task_key, actor_kind, model, actor_group, weight,
    stack(10,
      'duration', try_cast(round(duration_ms * 1000) AS BIGINT),
      'wait', try_cast(round(wait_ms * 1000) AS BIGINT),
      'cost', try_cast(round(cost_usd * 1000000) AS BIGINT),
      'compute', try_cast(round(cost_compute_usd * 1000000) AS BIGINT),
      'model', try_cast(round(cost_model_usd * 1000000) AS BIGINT),
      'human', try_cast(round(cost_human_usd * 1000000) AS BIGINT),
      'tokens_in', tokens_in,
      'tokens_out', tokens_out,
      'memory', try_cast(round(memory_gb * 1000000) AS BIGINT),
      'threads', try_cast(round(threads * 1000000) AS BIGINT)
    ) AS (measure, value)
  FROM steps
)
SELECT * FROM measured WHERE value IS NOT NULL
