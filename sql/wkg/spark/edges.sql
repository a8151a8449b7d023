-- Pairs are taken inside the nested list, by position or by `predecessors`.
SELECT implementation_id, source, industry, weight,
  inline(flatten(transform(tasks, (t, i) -> transform(
    array_distinct(coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>)))),
    j -> named_struct(
      'src_key', get(tasks, j).task_key, 'dst_key', t.task_key, 'seen', coalesce(t.started_at, t.ended_at))))))
FROM implementations
