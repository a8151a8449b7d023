SELECT source, industry, weight, CAST(pmod(crc32(CAST(case_id AS BINARY)), 5) AS INT) AS fold,
  inline(flatten(transform(tasks, (t, i) -> transform(
    array_distinct(coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>)))),
    j -> named_struct(
      'src_key', get(tasks, j).task_key, 'dst_key', t.task_key,
      'actor_kind', t.actor_kind, 'model', t.model, 'actor_group', t.actor_group, 'success', t.success,
      'duration_ms', t.duration_ms, 'cost_usd', t.cost_usd,
      'after_failure', coalesce(exists(
        coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>))),
        k -> NOT get(tasks, k).success), false))))))
FROM implementations
