WITH pairs AS (
  SELECT source, industry, weight,
    unnest(flatten(list_transform(tasks, lambda t, i: list_transform(places(tasks, t, i),
      lambda j: {src_key: get(tasks, j).task_key, ended_at: get(tasks, j).ended_at, step: t}))), max_depth := 2)
  FROM implementations
)
SELECT source, industry, weight, src_key, step.task_key AS dst_key,
  step.actor_kind, step.model, actor_group(step.attributes, step.actor_kind) AS actor_group,
  step.duration_ms IS NULL AS with_work,
  CASE WHEN step.predecessors IS NULL THEN step.wait_ms END AS stated_wait_ms,
  -- greatest(0, x) would turn an unknown x into 0
  CASE WHEN step.started_at < ended_at THEN 0 ELSE epoch_us(step.started_at) - epoch_us(ended_at) END AS gap_us
FROM pairs
