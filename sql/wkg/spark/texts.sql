WITH steps AS (
  SELECT source, industry, client, weight, inline(tasks) FROM implementations
), said AS (
  SELECT source, industry, client, task_key, actor_kind, model, actor_group, weight, 'description' AS field, description AS value FROM steps
  UNION ALL SELECT source, industry, client, task_key, actor_kind, model, actor_group, weight, 'instruction', explode(instructions) FROM steps
  UNION ALL SELECT source, industry, client, task_key, actor_kind, model, actor_group, weight, 'input', explode(inputs) FROM steps
  UNION ALL SELECT source, industry, client, task_key, actor_kind, model, actor_group, weight, 'output', explode(outputs) FROM steps
)
SELECT * FROM said WHERE value IS NOT NULL
