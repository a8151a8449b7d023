-- The rank-1 workflow of every Intention that is another one than in the result before, or whose figures differ, and the cases behind that.
-- Views: old_* and new_* of optimized (rank 1 alone), steps (its tasks and reviews), intakes, neighbours; touched (sql/changes/touched.sql).
WITH
    steps AS (
        SELECT
            side, workflow_id, list(title ORDER BY position) AS steps, list(task_id ORDER BY position) AS task_ids,
            list([coalesce(actor_kind, ''), coalesce(model, ''), coalesce(actor_group, '')] ORDER BY position) AS ways
        FROM (SELECT 'old' AS side, * FROM old_steps UNION ALL BY NAME SELECT 'new' AS side, * FROM new_steps)
        GROUP BY side, workflow_id
    ),
    best AS (
        SELECT o.*, coalesce(s.steps, []) AS steps, coalesce(s.task_ids, []) AS task_ids, coalesce(s.ways, []) AS ways, i.folder, i.content_hash
        FROM (SELECT 'old' AS side, * FROM old_optimized UNION ALL BY NAME SELECT 'new' AS side, * FROM new_optimized) AS o
        LEFT JOIN steps AS s USING (side, workflow_id)
        LEFT JOIN (
            SELECT 'old' AS side, * FROM old_intakes UNION ALL BY NAME SELECT 'new' AS side, * FROM new_intakes
        ) AS i USING (side, intake_id)
    ),
    compared AS (
        SELECT
            coalesce(n.intake_id, o.intake_id) AS intake_id, coalesce(n.intention_id, o.intention_id) AS intention_id,
            coalesce(n.folder, o.folder) AS folder,
            CASE
                WHEN o.workflow_id IS NULL THEN 'added'
                WHEN n.workflow_id IS NULL THEN 'removed'
                WHEN o.steps <> n.steps OR o.task_ids IS DISTINCT FROM n.task_ids THEN 'steps'
                WHEN o.ways <> n.ways THEN 'ways'
                WHEN o.workflow_id <> n.workflow_id THEN 'order'
                ELSE 'figures'
            END AS change,
            o.workflow_id AS workflow_id_before, n.workflow_id AS workflow_id_after,
            o.title AS title_before, n.title AS title_after, o.steps AS steps_before, n.steps AS steps_after,
            list_filter(coalesce(n.steps, []), lambda x: NOT list_contains(coalesce(o.steps, []), x)) AS steps_added,
            list_filter(coalesce(o.steps, []), lambda x: NOT list_contains(coalesce(n.steps, []), x)) AS steps_removed,
            list_concat(
                list_filter(coalesce(n.task_ids, []), lambda x: NOT list_contains(coalesce(o.task_ids, []), x)),
                list_filter(coalesce(o.task_ids, []), lambda x: NOT list_contains(coalesce(n.task_ids, []), x))
            ) AS tasks_moved,
            o.reward_usd AS reward_usd_before, n.reward_usd AS reward_usd_after,
            o.success_probability AS success_before, n.success_probability AS success_after,
            o.cost_usd AS cost_usd_before, n.cost_usd AS cost_usd_after,
            o.duration_ms AS duration_ms_before, n.duration_ms AS duration_ms_after,
            o.verdict AS verdict_before, n.verdict AS verdict_after, o.feasible AS feasible_before, n.feasible AS feasible_after,
            o.content_hash IS DISTINCT FROM n.content_hash AS intake_differs,
            o.decision_number IS DISTINCT FROM n.decision_number AS decision_differs
        FROM (FROM best WHERE side = 'old') AS o FULL JOIN (FROM best WHERE side = 'new') AS n USING (intake_id, intention_id)
    ),
    differing AS (
        FROM compared
        WHERE change <> 'figures' OR verdict_before IS DISTINCT FROM verdict_after OR feasible_before IS DISTINCT FROM feasible_after
            OR list_bool_or(list_transform(
                [
                    [reward_usd_before, reward_usd_after], [success_before, success_after], [cost_usd_before, cost_usd_after],
                    [duration_ms_before, duration_ms_after]
                ],
                lambda x: (x[1] IS NULL) <> (x[2] IS NULL) OR coalesce(abs(x[1] - x[2]) > 1e-9 * greatest(1, abs(x[1])), false)
            ))
    ),
    near AS (
        SELECT
            coalesce(n.intention_id, o.intention_id) AS intention_id, implementation_id, o.intention_id IS NULL OR n.intention_id IS NULL AS moved
        FROM old_neighbours AS o FULL JOIN new_neighbours AS n USING (intention_id, implementation_id)
    ),
    behind AS (
        -- near cases that came into or left the neighbourhood, or changed themselves
        SELECT intention_id, implementation_id, t.source FROM near LEFT JOIN touched AS t USING (implementation_id)
        WHERE moved OR t.implementation_id IS NOT NULL
        UNION
        -- touched cases with a step that came or went
        SELECT d.intention_id, t.implementation_id, t.source
        FROM (SELECT intention_id, unnest(tasks_moved) AS task_id FROM differing) AS d
        JOIN (
            SELECT DISTINCT implementation_id, source, unnest(list_concat(tasks_before, tasks_after)) AS task_id FROM touched
        ) AS t USING (task_id)
    ),
    evidence AS (
        SELECT
            intention_id, count(DISTINCT implementation_id) AS cases, list(DISTINCT implementation_id ORDER BY implementation_id)[:$most] AS ids,
            list(DISTINCT coalesce(b.source, c.source) ORDER BY coalesce(b.source, c.source))
                FILTER (coalesce(b.source, c.source) IS NOT NULL) AS sources
        FROM behind AS b LEFT JOIN case_sources AS c USING (implementation_id)
        GROUP BY intention_id
    )
SELECT
    d.* EXCLUDE (intake_differs, decision_differs, tasks_moved),
    list_concat(
        $because::VARCHAR[],
        CASE WHEN intake_differs AND change NOT IN ('added', 'removed') THEN ['intake'] ELSE [] END,
        CASE WHEN decision_differs AND change NOT IN ('added', 'removed') THEN ['decision'] ELSE [] END
    ) AS because,
    coalesce(e.sources, []) AS sources, coalesce(e.cases, 0) AS cases, coalesce(e.ids, []) AS implementation_ids
FROM differing AS d LEFT JOIN evidence AS e USING (intention_id)
