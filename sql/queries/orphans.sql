-- Every reference from one dataset to another: how many rows it has, and how many of them lead nowhere (0, unless something is broken).
-- opus query orphans
-- Of contracts whose snapshot is not the current one, references into wkg/ and history/ cannot be followed and are left out.
WITH
    now AS (SELECT client, contract, result FROM current_results WHERE snapshot = getvariable('snapshot')),
    found AS (
        SELECT 'generation/intentions → generation/intakes' AS reference, count(*) AS rows, count(*) FILTER (b.intake_id IS NULL) AS orphans,
            min(a.intention_id) FILTER (b.intake_id IS NULL) AS example
        FROM generation_intentions AS a LEFT JOIN generation_intakes AS b USING (client, contract, result, intake_id)
        UNION ALL
        SELECT 'workflows/optimized → generation/intentions', count(*), count(*) FILTER (b.intention_id IS NULL),
            min(a.workflow_id) FILTER (b.intention_id IS NULL)
        FROM workflows_optimized AS a LEFT JOIN generation_intentions AS b USING (client, contract, result, intake_id, intention_id)
        UNION ALL
        SELECT 'workflows/optimized → generation/sequences', count(*), count(*) FILTER (b.sequence_id IS NULL),
            min(a.workflow_id) FILTER (b.sequence_id IS NULL)
        FROM (SELECT client, contract, result, intention_id, workflow_id, unnest(sequence_ids) AS sequence_id FROM workflows_optimized) AS a
        LEFT JOIN (SELECT DISTINCT client, contract, result, intention_id, sequence_id FROM generation_sequences) AS b
            USING (client, contract, result, intention_id, sequence_id)
        UNION ALL
        SELECT 'workflows/tasks → workflows/optimized', count(*), count(*) FILTER (b.workflow_id IS NULL),
            min(a.workflow_id) FILTER (b.workflow_id IS NULL)
        FROM workflows_tasks AS a LEFT JOIN workflows_optimized AS b USING (client, contract, result, intake_id, intention_id, workflow_id)
        UNION ALL
        SELECT 'workflows/edges → workflows/tasks', count(*), count(*) FILTER (b.node IS NULL), min(a.workflow_id) FILTER (b.node IS NULL)
        FROM (SELECT client, contract, result, workflow_id, unnest([src, dst]) AS node FROM workflows_edges) AS a
        LEFT JOIN workflows_tasks AS b USING (client, contract, result, workflow_id, node)
        UNION ALL
        SELECT 'workflows/tasks → wkg/tasks', count(*), count(*) FILTER (b.task_id IS NULL), min(a.task_id) FILTER (b.task_id IS NULL)
        FROM workflows_tasks AS a SEMI JOIN now USING (client, contract, result) LEFT JOIN wkg_tasks AS b USING (task_id)
        WHERE a.task_id IS NOT NULL AND a.kind = 'task' AND a.origin IS DISTINCT FROM 'new'
        UNION ALL
        SELECT 'generation/sequences → generation/subgraph_tasks', count(*), count(*) FILTER (b.subgraph_id IS NULL),
            min(a.sequence_id) FILTER (b.subgraph_id IS NULL)
        FROM generation_sequences AS a
        LEFT JOIN (SELECT DISTINCT client, contract, result, intention_id, subgraph_id FROM generation_subgraph_tasks) AS b
            USING (client, contract, result, intention_id, subgraph_id)
        UNION ALL
        SELECT 'generation/sequences → wkg/tasks', count(*), count(*) FILTER (b.task_id IS NULL), min(a.sequence_id) FILTER (b.task_id IS NULL)
        FROM generation_sequences AS a SEMI JOIN now USING (client, contract, result) LEFT JOIN wkg_tasks AS b USING (task_id)
        WHERE NOT coalesce(a.is_new, false)
        UNION ALL
        SELECT 'generation/subgraph_edges → generation/subgraph_tasks', count(*), count(*) FILTER (b.task_id IS NULL),
            min(a.subgraph_id) FILTER (b.task_id IS NULL)
        FROM (SELECT client, contract, result, intention_id, subgraph_id, unnest([src, dst]) AS task_id FROM generation_subgraph_edges) AS a
        LEFT JOIN generation_subgraph_tasks AS b USING (client, contract, result, intention_id, subgraph_id, task_id)
        UNION ALL
        SELECT 'generation/subgraph_tasks → wkg/tasks', count(*), count(*) FILTER (b.task_id IS NULL), min(a.task_id) FILTER (b.task_id IS NULL)
        FROM generation_subgraph_tasks AS a SEMI JOIN now USING (client, contract, result) LEFT JOIN wkg_tasks AS b USING (task_id)
        UNION ALL
        SELECT 'generation/wfg_edges → generation/wfg_nodes', count(*), count(*) FILTER (b.node IS NULL), min(a.node) FILTER (b.node IS NULL)
        FROM (SELECT client, contract, result, intention_id, unnest([src, dst]) AS node FROM generation_wfg_edges) AS a
        LEFT JOIN generation_wfg_nodes AS b USING (client, contract, result, intention_id, node)
        UNION ALL
        SELECT 'generation/wfg_nodes → generation/sequences', count(*), count(*) FILTER (b.sequence_id IS NULL),
            min(a.node) FILTER (b.sequence_id IS NULL)
        FROM (SELECT client, contract, result, intention_id, node, unnest(sequence_ids) AS sequence_id FROM generation_wfg_nodes) AS a
        LEFT JOIN (SELECT DISTINCT client, contract, result, intention_id, sequence_id FROM generation_sequences) AS b
            USING (client, contract, result, intention_id, sequence_id)
        UNION ALL
        SELECT 'generation/neighbours → wkg/cases or decisions', count(*), count(*) FILTER (b.implementation_id IS NULL),
            min(a.implementation_id) FILTER (b.implementation_id IS NULL)
        FROM generation_neighbours AS a SEMI JOIN now USING (client, contract, result)
        LEFT JOIN (SELECT implementation_id FROM wkg_cases UNION ALL SELECT decision_id FROM decisions) AS b USING (implementation_id)
        UNION ALL
        SELECT 'wkg/cases → history/implementations', count(*), count(*) FILTER (b.implementation_id IS NULL),
            min(a.implementation_id) FILTER (b.implementation_id IS NULL)
        FROM wkg_cases AS a LEFT JOIN history_implementations AS b USING (implementation_id)
        UNION ALL
        SELECT 'wkg/cases → wkg/tasks', count(*), count(*) FILTER (b.task_id IS NULL), min(a.task_id) FILTER (b.task_id IS NULL)
        FROM (SELECT DISTINCT unnest(tasks) AS task_id FROM wkg_cases) AS a LEFT JOIN wkg_tasks AS b USING (task_id)
        UNION ALL
        SELECT 'history/implementations → history/sources', count(*), count(*) FILTER (b.path IS NULL),
            min(a.implementation_id) FILTER (b.path IS NULL)
        FROM history_implementations AS a LEFT JOIN history_sources AS b USING (source, path)
        UNION ALL
        SELECT 'reports/reward → generation/intentions', count(*), count(*) FILTER (b.intention_id IS NULL),
            min(a.intention_id) FILTER (b.intention_id IS NULL)
        FROM reports_reward AS a LEFT JOIN generation_intentions AS b USING (client, contract, result, intake_id, intention_id)
        UNION ALL
        SELECT 'reports/cost → workflows/tasks', count(*), count(*) FILTER (b.task_id IS NULL), min(a.task_id) FILTER (b.task_id IS NULL)
        FROM reports_cost AS a
        LEFT JOIN (
            SELECT DISTINCT client, contract, result, coalesce(task_id, kind) AS task_id FROM workflows_tasks
        ) AS b USING (client, contract, result, task_id)
        UNION ALL
        SELECT 'wkg/edges → wkg/tasks', count(*), count(*) FILTER (b.task_id IS NULL), min(a.task_id) FILTER (b.task_id IS NULL)
        FROM (SELECT unnest([src, dst]) AS task_id FROM wkg_edges) AS a LEFT JOIN wkg_tasks AS b USING (task_id)
        UNION ALL
        SELECT 'generation/intakes → generation/runs', count(*), count(*) FILTER (b.result IS NULL), min(a.intake_id) FILTER (b.result IS NULL)
        FROM generation_intakes AS a LEFT JOIN generation_runs AS b USING (client, contract, result)
    )
SELECT reference, rows, orphans, example
FROM found
ORDER BY orphans DESC, reference;
