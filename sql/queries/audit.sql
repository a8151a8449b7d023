-- Where a workflow's figures come from, link by link: report, intake, Intention, cases, SWKG, sequences, WFG, snapshot, model, history files.
-- opus query audit --set workflow=WORKFLOW, or of a row of reports/reward --set intention=INTENTION: its best workflow
-- `ids` are what a link consists of, `hash` what proves it, `lost` the ids that it names and that are nowhere: an empty list, unless
-- a source was taken out of history since. The default workflow is the best Reward of all, the first by id where none is stated.
WITH
    this AS (
        FROM workflows_optimized
        WHERE workflow_id = CASE
            WHEN getvariable('workflow') IS NOT NULL THEN getvariable('workflow')::VARCHAR
            WHEN getvariable('intention') IS NOT NULL
            THEN (SELECT workflow_id FROM workflows_optimized WHERE rank = 1 AND intention_id = getvariable('intention')::VARCHAR)
            ELSE (SELECT workflow_id FROM workflows_optimized WHERE rank = 1 ORDER BY reward_usd DESC, workflow_id LIMIT 1)
        END
    ),
    intake AS (SELECT i.* FROM generation_intakes AS i JOIN this USING (client, contract, result, intake_id)),
    intention AS (SELECT n.* FROM generation_intentions AS n JOIN this USING (client, contract, result, intake_id, intention_id)),
    near AS (SELECT n.* FROM generation_neighbours AS n JOIN this USING (client, contract, result, intake_id, intention_id)),
    subgraph AS (SELECT s.* FROM generation_subgraph_tasks AS s JOIN this USING (client, contract, result, intake_id, intention_id)),
    sequence AS (
        SELECT s.* FROM generation_sequences AS s JOIN this USING (client, contract, result, intake_id, intention_id)
        WHERE list_contains(this.sequence_ids, s.sequence_id)
    ),
    step AS (SELECT t.* FROM workflows_tasks AS t JOIN this USING (client, contract, result, workflow_id)),
    wfg AS (SELECT w.* FROM generation_wfg_nodes AS w JOIN this USING (client, contract, result, intake_id, intention_id)),
    work AS (SELECT DISTINCT task_id FROM step WHERE task_id IS NOT NULL AND origin IS DISTINCT FROM 'new'),
    cases AS (SELECT h.* FROM history_implementations AS h SEMI JOIN near USING (implementation_id)),
    links AS (
        SELECT 0 AS position, 'report' AS link, 'reports/reward' AS dataset, [intention_id] AS ids, NULL AS hash,
            coalesce(format('Reward {:.2f} USD', r.reward_usd), 'no gain stated') || coalesce(format(', of history''s way {:.2f}', r.baseline_reward_usd), '') AS detail, []::VARCHAR[] AS lost
        FROM reports_reward AS r JOIN this USING (client, contract, result, intake_id, intention_id)
        UNION ALL
        SELECT 1, 'workflow', 'workflows/optimized', [workflow_id], result, format('rank {}, ', rank) || coalesce(format('Reward {:.2f} USD', reward_usd), 'no gain stated'), []
        FROM this
        UNION ALL
        SELECT 2, 'intake', 'generation/intakes', list(intake_id), any_value(content_hash), any_value(folder),
            (SELECT list(intake_id) FROM this ANTI JOIN intake USING (intake_id))
        FROM intake
        UNION ALL
        SELECT 3, 'document', 'generation/intakes', [e.element_id], e.sha256, concat_ws(' ', e.role, e.name, e.bytes || ' bytes'), []
        FROM (SELECT unnest(elements) AS e FROM intake)
        UNION ALL
        SELECT 4, 'intention', 'generation/intentions', list(intention_id), NULL, any_value(goal),
            (SELECT list(intention_id) FROM this ANTI JOIN intention USING (intention_id))
        FROM intention
        UNION ALL
        SELECT 5, 'near cases', 'generation/neighbours', list(implementation_id ORDER BY similarity DESC, implementation_id), NULL,
            format('similarity {:.3f} to {:.3f}', min(similarity), max(similarity)),
            list(implementation_id ORDER BY implementation_id) FILTER (
                implementation_id NOT IN (SELECT implementation_id FROM wkg_cases UNION ALL SELECT decision_id FROM decisions)
            )
        FROM near
        UNION ALL
        SELECT 6, 'history', 'history/implementations', list(implementation_id ORDER BY implementation_id),
            md5(string_agg(content_hash, '' ORDER BY implementation_id)),
            string_agg(DISTINCT source, ', ' ORDER BY source),
            (SELECT list(implementation_id ORDER BY implementation_id)
                FROM near ANTI JOIN cases USING (implementation_id) WHERE implementation_id NOT IN (SELECT decision_id FROM decisions))
        FROM cases
        UNION ALL
        SELECT 7, 'history file', 'history/sources', [s.source || '/' || s.path], s.content_hash, concat_ws(' ', s.format, s.bytes || ' bytes'), []
        FROM history_sources AS s SEMI JOIN cases USING (source, path)
        UNION ALL
        SELECT 8, 'SWKG', 'generation/subgraph_tasks', list(DISTINCT subgraph_id ORDER BY subgraph_id), NULL,
            format('{} tasks', count(DISTINCT task_id)),
            list(DISTINCT task_id ORDER BY task_id) FILTER (task_id NOT IN (SELECT task_id FROM wkg_tasks))
        FROM subgraph
        UNION ALL
        SELECT 9, 'sequences', 'generation/sequences', list(DISTINCT sequence_id ORDER BY sequence_id), any_value(model_version),
            format('{} of {}', count(DISTINCT sequence_id), any_value(backend)),
            (SELECT list(x ORDER BY x) FROM (SELECT unnest(sequence_ids) AS x FROM this) WHERE x NOT IN (SELECT sequence_id FROM sequence))
        FROM sequence
        UNION ALL
        SELECT 10, 'WFG', 'generation/wfg_nodes', list(node ORDER BY node), NULL, format('{} nodes', count(*)), []
        FROM wfg
        UNION ALL
        SELECT 11, 'steps', 'workflows/tasks', list(node ORDER BY position), NULL, string_agg(title, ' → ' ORDER BY position),
            list(node ORDER BY node) FILTER (kind = 'task' AND node NOT IN (SELECT node FROM wfg))
        FROM step
        UNION ALL
        SELECT 12, 'tasks', 'wkg/tasks', list(w.task_id ORDER BY w.task_id), NULL, format('{} in the snapshot', count(t.task_id)),
            list(w.task_id ORDER BY w.task_id) FILTER (t.task_id IS NULL)
        FROM work AS w LEFT JOIN wkg_tasks AS t USING (task_id)
        UNION ALL
        SELECT 13, 'snapshot', 'wkg/current.json', [t.snapshot], md5(s.manifest::VARCHAR),
            CASE WHEN s.snapshot IS NULL THEN 'replaced since: its folder stays while a result names it' ELSE 'the current one' END, []
        FROM this AS t LEFT JOIN current_snapshot AS s USING (snapshot)
        UNION ALL
        SELECT 14, 'model', 'workflows/optimized', [model_version], model_version, backend, [] FROM this
        UNION ALL
        SELECT 15, 'run', 'generation/runs', [r.run_id], r.code_version, 'settings ' || r.settings_hash, []
        FROM generation_runs AS r SEMI JOIN this USING (client, contract, result)
    )
SELECT position, link, dataset, len(ids) AS rows, detail, hash, coalesce(lost, []) AS lost, ids
FROM links
WHERE EXISTS (FROM this)
ORDER BY position, ids;
