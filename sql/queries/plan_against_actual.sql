-- Plan against actual: what a ranked workflow forecast, and what became of the cases that state its id, by measure; `is_missed` where they differ surely.
-- opus query plan_against_actual --set client=CLIENT
-- A case states its workflow in the attribute workflow_id, a column of the client's export. Cases that go on are left out. `actual_low` and `actual_high`
-- are the 95 % interval of the actual figure (Wilson's of a share, the normal one of a mean). A workflow_id that is in no current result has no forecast.
WITH cases AS (
    SELECT c.*, attributes['workflow_id'] AS workflow_id
    FROM process_cases AS c
    WHERE attributes['workflow_id'] IS NOT NULL AND coalesce(p_ended, 1) >= 0.5
        AND coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
), planned AS (
    SELECT workflow_id, list_sort(list(DISTINCT task_id)) AS planned_tasks FROM workflows_tasks WHERE kind = 'task' GROUP BY workflow_id
), joined AS (
    SELECT
        c.client, o.contract, c.workflow_id, o.title, o.rank, c.success, c.cost_usd AS paid_usd, c.lead_time_ms, o.success_probability, o.cost_usd,
        o.lead_time_ms_p50, o.lead_time_ms_p90, o.deadline_hours, o.p_deadline, list_sort(list_distinct(c.tasks)) = planned_tasks AS is_as_planned
    FROM cases AS c
    LEFT JOIN workflows_optimized AS o ON c.workflow_id = o.workflow_id AND c.client IS NOT DISTINCT FROM o.client
    LEFT JOIN planned AS p ON c.workflow_id = p.workflow_id
), measured AS (
    SELECT client, contract, workflow_id, any_value(title) AS title, any_value(rank) AS rank, unnest([
        {'measure': 'success', 'forecast': any_value(success_probability), 'n': count(success), 'mean': avg(success::INT), 'spread': NULL},
        {'measure': 'lead time within its median', 'forecast': any_value(if(lead_time_ms_p50 IS NULL, NULL, 0.5)), 'n': count(lead_time_ms),
         'mean': avg((lead_time_ms <= lead_time_ms_p50)::INT), 'spread': NULL},
        {'measure': 'lead time within its 90th percentile', 'forecast': any_value(if(lead_time_ms_p90 IS NULL, NULL, 0.9)), 'n': count(lead_time_ms),
         'mean': avg((lead_time_ms <= lead_time_ms_p90)::INT), 'spread': NULL},
        {'measure': 'deadline kept', 'forecast': any_value(p_deadline), 'n': count(lead_time_ms),
         'mean': avg((lead_time_ms <= 3600000 * deadline_hours)::INT), 'spread': NULL},
        {'measure': 'exactly the planned steps', 'forecast': NULL, 'n': count(is_as_planned), 'mean': avg(is_as_planned::INT), 'spread': NULL},
        {'measure': 'cost (USD)', 'forecast': any_value(cost_usd), 'n': count(paid_usd), 'mean': avg(paid_usd),
         'spread': coalesce(stddev_samp(paid_usd), 0)}
    ], recursive := true)
    FROM joined
    GROUP BY client, contract, workflow_id
), bounded AS (
    SELECT
        *,
        if(spread IS NULL, (mean + 1.92 / n) / (1 + 3.84 / n), mean) AS middle,
        if(spread IS NULL, 1.96 / (1 + 3.84 / n) * sqrt(mean * (1 - mean) / n + 0.96 / n ** 2), 1.96 * spread / sqrt(n)) AS half
    FROM measured
    WHERE n > 0 AND (mean IS NOT NULL OR forecast IS NOT NULL)
)
SELECT
    client, contract, workflow_id, title, rank, measure, forecast, mean AS actual, middle - half AS actual_low, middle + half AS actual_high, n AS cases,
    coalesce(forecast NOT BETWEEN middle - half AND middle + half, false) AS is_missed
FROM bounded
ORDER BY client, contract, rank NULLS LAST, workflow_id, measure;
