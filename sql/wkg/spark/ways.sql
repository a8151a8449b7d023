SELECT source, industry, client, weight,
  inline(transform(tasks, (t, i) -> named_struct(
    'task_key', t.task_key, 'actor_kind', t.actor_kind, 'model', t.model, 'actor_group', t.actor_group, 'success', t.success,
    'seen', coalesce(t.started_at, t.ended_at),
    'priced', t.cost_usd IS NOT NULL AND t.cost_basis = 'rate',
    -- A predecessor that is not known to have failed counts as right.
    'after_failure', coalesce(exists(
      coalesce(t.predecessors, IF(i > 0, array(i - 1), CAST(array() AS ARRAY<INT>))),
      j -> NOT get(tasks, j).success), false)
  )))
FROM implementations
