WITH steps AS (
  SELECT source, industry, weight, unnest(tasks, max_depth := 2) FROM implementations
), measured AS (
  SELECT source, industry, task_key, actor_kind, model, actor_group(attributes, actor_kind) AS actor_group, weight,
    unnest([
      {measure: 'duration', value: TRY_CAST(round(duration_ms * 1000) AS BIGINT)},
      {measure: 'wait', value: TRY_CAST(round(wait_ms * 1000) AS BIGINT)},
      {measure: 'cost', value: TRY_CAST(round(cost_usd * 1000000) AS BIGINT)},
      {measure: 'compute', value: TRY_CAST(round(cost_compute_usd * 1000000) AS BIGINT)},
      {measure: 'model', value: TRY_CAST(round(cost_model_usd * 1000000) AS BIGINT)},
      {measure: 'human', value: TRY_CAST(round(cost_human_usd * 1000000) AS BIGINT)},
      {measure: 'tokens_in', value: tokens_in},
      {measure: 'tokens_out', value: tokens_out},
      {measure: 'memory', value: TRY_CAST(round(memory_gb * 1000000) AS BIGINT)},
      {measure: 'threads', value: TRY_CAST(round(threads * 1000000) AS BIGINT)}
    ], max_depth := 2)
  FROM steps
)
SELECT * FROM measured WHERE value IS NOT NULL
