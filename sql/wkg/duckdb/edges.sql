-- Pairs are taken inside the nested list, by position or by `predecessors`.
SELECT implementation_id, source, industry, weight,
  unnest(flatten(list_transform(tasks, lambda t, i: list_transform(places(tasks, t, i),
    lambda j: {src_key: get(tasks, j).task_key, dst_key: t.task_key, seen: coalesce(t.started_at, t.ended_at)}))), max_depth := 2)
FROM implementations
