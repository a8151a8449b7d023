SELECT source, industry, weight,
  inline(flatten(transform(tasks, (t, i) -> transform(
    array_distinct(coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>)))),
    j -> named_struct(
      'src_key', get(tasks, j).task_key, 'dst_key', t.task_key,
      'actor_kind', t.actor_kind, 'model', t.model, 'actor_group', t.actor_group, 'with_work', t.duration_ms IS NULL,
      'stated_wait_ms', IF(t.predecessors IS NULL, t.wait_ms, NULL),
      -- greatest(0, x) would turn an unknown x into 0
      'gap_us', IF(t.started_at < get(tasks, j).ended_at, 0, unix_micros(t.started_at) - unix_micros(get(tasks, j).ended_at)))))))
FROM implementations
