WITH steps AS (
  SELECT source, industry, client, weight,
    unnest(list_transform(tasks, lambda t, i: {step: t, after_failure: after_failure(tasks, t, i)}), max_depth := 2)
  FROM implementations
)
SELECT source, industry, client, weight, step.task_key,
  step.actor_kind, step.model, actor_group(step.attributes, step.actor_kind) AS actor_group,
  step.success, coalesce(step.started_at, step.ended_at) AS seen,
  step.cost_usd IS NOT NULL AND coalesce(step.cost_basis = 'rate', false) AS priced, after_failure
FROM steps
