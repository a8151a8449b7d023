WITH steps AS (
  SELECT source, industry, client, weight, unnest(tasks, max_depth := 2) FROM implementations
), said AS (
  SELECT source, industry, client, task_key, actor_kind, model, actor_group(attributes, actor_kind) AS actor_group, weight,
    unnest(list_concat(
      [{field: 'description', value: description}],
      list_transform(instructions, lambda text: {field: 'instruction', value: text}),
      list_transform(inputs, lambda text: {field: 'input', value: text}),
      list_transform(outputs, lambda text: {field: 'output', value: text})
    ), max_depth := 2)
  FROM steps
)
SELECT * FROM said WHERE value IS NOT NULL
