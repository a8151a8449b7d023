-- The other ranked workflows of the same Intention: how they differ from this one in figures and in steps. `other_way`: common steps that
-- someone else does there; `swaps`: steps replaced, added, left out or done by someone else (optimization/diversity).
WITH
    this AS (FROM workflows_optimized WHERE workflow_id = $workflow),
    steps AS (
        SELECT workflow_id, node, position, title, concat_ws(' ', actor_kind, model, actor_group) AS who
        FROM workflows_tasks WHERE kind IN ('task', 'review')
    ),
    mine AS (FROM steps WHERE workflow_id = $workflow),
    others AS (
        FROM steps
        SEMI JOIN (SELECT o.workflow_id FROM workflows_optimized AS o JOIN this USING (client, contract, intake_id, intention_id)) USING (workflow_id)
    ),
    pairs AS (
        SELECT o.workflow_id AS rival, m.node AS here, t.node AS there, coalesce(m.title, t.title) AS title, m.who AS who_here, t.who AS who_there,
            coalesce(m.position, t.position) AS position
        FROM (SELECT DISTINCT workflow_id FROM others) AS o
        CROSS JOIN (SELECT DISTINCT node FROM others) AS every
        LEFT JOIN mine AS m ON m.node = every.node
        LEFT JOIN others AS t ON t.node = every.node AND t.workflow_id = o.workflow_id
        WHERE m.node IS NOT NULL OR t.node IS NOT NULL
    ),
    told AS (
        SELECT rival,
            list(title ORDER BY position) FILTER (there IS NULL) AS only_here,
            list(title ORDER BY position) FILTER (here IS NULL) AS only_there,
            list({'title': title, 'here': who_here, 'there': who_there} ORDER BY position) FILTER (who_here <> who_there) AS other_way
        FROM pairs GROUP BY rival
    )
SELECT
    o.rank, o.ahead_by, o.workflow_id, o.reward_usd, o.cost_usd, o.success_of_steps, o.feasible, o.violations, o.penalty, o.duration_ms, o.beats_next,
    o.conformity, o.has_optional, o.cost_unknown_steps, o.lead_time_ms_p50, o.lead_time_ms_p90,
    only_here, only_there, other_way,
    greatest(len(coalesce(only_here, [])), len(coalesce(only_there, []))) + len(coalesce(other_way, [])) AS swaps
FROM this
JOIN workflows_optimized AS o USING (client, contract, intake_id, intention_id)
LEFT JOIN told ON told.rival = o.workflow_id
WHERE o.workflow_id <> this.workflow_id
ORDER BY o.rank
