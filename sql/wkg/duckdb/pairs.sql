-- DuckDB has no crc32: the fold of a case comes with it.
WITH pairs AS (
  SELECT source, industry, weight, fold,
    unnest(flatten(list_transform(tasks, lambda t, i: list_transform(places(tasks, t, i),
      lambda j: {src_key: get(tasks, j).task_key, step: t, after_failure: after_failure(tasks, t, i)}))), max_depth := 2)
  FROM implementations
)
SELECT source, industry, weight, fold, src_key, step.task_key AS dst_key,
  step.actor_kind, step.model, actor_group(step.attributes, step.actor_kind) AS actor_group,
  step.success, step.duration_ms, step.cost_usd, after_failure
FROM pairs
