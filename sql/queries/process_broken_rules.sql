-- Which cases broke a rule or a limit of their contract: each finished case, the rule, and what the case did instead.
-- opus query process_broken_rules --set client=CLIENT --set contract=CONTRACT
-- Checked are the rules in force in more than half of the contract's intentions: must_contain, must_not_contain, before, max_cost_usd,
-- max_duration_hours (working time) and max_lead_time_hours. A case is of its contract or, where it states none, of its client.
WITH demands AS (
    SELECT client, contract, intention_id, unnest(constraints) AS rule FROM generation_intentions
    WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
        AND coalesce(contract = getvariable('contract')::VARCHAR, getvariable('contract') IS NULL)
), intakes AS (
    SELECT client, contract, count(DISTINCT intention_id) AS intentions FROM demands GROUP BY client, contract
), rules AS (
    SELECT
        client, contract, rule.kind AS kind, rule.value AS value, any_value(rule.sentence) AS sentence,
        lower(replace(trim(if(kind = 'before', split_part(value, ' before ', 1), value)), '_', ' ')) AS first,
        lower(replace(trim(if(kind = 'before', split_part(value, ' before ', 2), '')), '_', ' ')) AS second
    FROM demands JOIN intakes USING (client, contract)
    WHERE rule.status = 'in force'
        AND rule.kind IN ('must_contain', 'must_not_contain', 'before', 'max_cost_usd', 'max_duration_hours', 'max_lead_time_hours')
    GROUP BY client, contract, kind, value
    HAVING 2 * count(DISTINCT intention_id) > any_value(intentions)
), names AS (
    SELECT name, list(DISTINCT task_id) AS tasks FROM (
        SELECT lower(replace(trim(title), '_', ' ')) AS name, task_id FROM wkg_tasks
        UNION ALL SELECT lower(replace(trim(task_key), '_', ' ')), task_id FROM wkg_task_aliases
    ) GROUP BY name
), bound AS (
    SELECT rules.*, coalesce(a.tasks, []) AS first_tasks, coalesce(b.tasks, []) AS second_tasks, TRY_CAST(value AS DOUBLE) AS most
    FROM rules LEFT JOIN names AS a ON a.name = first LEFT JOIN names AS b ON b.name = second
), checked AS (
    SELECT
        r.client, r.contract, r.kind, r.value, r.sentence, c.source, c.implementation_id, c.success, c.started_at,
        CASE r.kind
            WHEN 'must_contain' THEN if(list_has_any(c.tasks, first_tasks), NULL, 'it was never done')
            WHEN 'must_not_contain' THEN if(list_has_any(c.tasks, first_tasks), 'it was done', NULL)
            WHEN 'before' THEN if(list_has_any(list_filter(c.tasks, lambda task, place: list_contains(second_tasks, task)
                AND NOT list_has_any(c.tasks[:place], first_tasks)), second_tasks), 'the second was done without the first before it', NULL)
            WHEN 'max_cost_usd' THEN if(c.cost_usd > most, format('{:.2f} USD', c.cost_usd), NULL)
            WHEN 'max_duration_hours' THEN if(c.work_ms > 3600000 * most, format('{:.1f} hours', c.work_ms / 3600000), NULL)
            WHEN 'max_lead_time_hours' THEN if(c.lead_time_ms > 3600000 * most, format('{:.1f} hours', c.lead_time_ms / 3600000), NULL)
        END AS instead
    FROM bound AS r JOIN process_cases AS c ON c.client = r.client AND coalesce(c.contract = r.contract, true)
    WHERE coalesce(c.p_ended, 1) >= 0.5
        AND (r.kind LIKE 'max_%' OR len(first_tasks) > 0) AND (r.kind <> 'before' OR len(second_tasks) > 0)
)
SELECT
    b.client, b.contract, b.kind, b.value, instead, b.source, h.case_id, b.started_at, b.success, b.sentence,
    count(*) OVER (PARTITION BY b.client, b.contract, b.kind, b.value) AS cases_that_broke_it
FROM (FROM checked WHERE instead IS NOT NULL) AS b
LEFT JOIN (SELECT implementation_id, case_id FROM history_implementations) AS h USING (implementation_id)
ORDER BY b.client, b.contract, cases_that_broke_it DESC, b.kind, b.value, b.started_at, b.implementation_id;
