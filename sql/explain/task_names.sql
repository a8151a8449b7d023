-- Every task with all of its names, and who does it, most frequent first.
SELECT
    t.task_id, t.title, t.industries,
    (SELECT list(DISTINCT name ORDER BY name) FROM (
        SELECT unnest([a.title, a.task_key]) AS name FROM wkg_task_aliases AS a WHERE a.task_id = t.task_id
    ) WHERE name IS NOT NULL) AS names,
    -- in the order of the snapshot's graph, by which groups of other clients are numbered
    (SELECT list({'kind': w.actor_kind, 'model': w.model, 'team': w.actor_group, 'clients': w.clients}
        ORDER BY w.implementations DESC, coalesce(w.actor_kind, 'None'), coalesce(w.model, 'None'),
            coalesce(w.actor_group, 'None'))
     FROM wkg_task_implementations AS w WHERE w.task_id = t.task_id) AS ways
FROM wkg_tasks AS t
ORDER BY t.task_id
