-- What changed since last month: the last whole month of each source and client against the month before, of cases and of each activity.
-- opus query process_months --set month=2025-06 --set client=CLIENT --set source=SOURCE
-- Cases and steps count in the month in which they ended (cases) or started (steps). A month is whole when a later step is known.
WITH cases AS (
    SELECT *, strftime(ended_at, '%Y-%m') AS month FROM process_cases
    WHERE ended_at IS NOT NULL AND coalesce(p_ended, 1) >= 0.5
        AND coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
        AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
), months AS (
    SELECT
        source, client, coalesce(getvariable('month')::VARCHAR, strftime(date_trunc('month', max(ended_at)) - INTERVAL 1 DAY, '%Y-%m')) AS now,
        strftime(strptime(now || '-01', '%Y-%m-%d') - INTERVAL 1 DAY, '%Y-%m') AS earlier
    FROM cases
    GROUP BY source, client
), of_cases AS (
    SELECT
        c.source, c.client, month, 'all cases' AS what, count(*) AS times, median(lead_time_ms) / 3600000 AS lead_hours_p50,
        avg(wait_ms) / 3600000 AS wait_hours_mean, avg(work_ms) / 3600000 AS work_hours_mean, avg(cost_usd) AS cost_usd_mean,
        avg(CAST(success AS INT)) AS success_share
    FROM cases AS c JOIN months AS m ON c.source = m.source AND c.client IS NOT DISTINCT FROM m.client AND month IN (now, earlier)
    GROUP BY c.source, c.client, month
), of_steps AS (
    SELECT
        s.source, s.client, strftime(started_at, '%Y-%m') AS month, title AS what, count(*) AS times, NULL AS lead_hours_p50,
        avg(wait_ms) / 3600000 AS wait_hours_mean, avg(work_ms) / 3600000 AS work_hours_mean, avg(cost_usd) AS cost_usd_mean, NULL AS success_share
    FROM (
        SELECT source, client, task_id, started_at, wait_ms, work_ms, cost_usd FROM process_steps
        WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
            AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
    ) AS s
    JOIN (SELECT task_id, title FROM wkg_tasks) USING (task_id)
    JOIN months AS m ON s.source = m.source AND s.client IS NOT DISTINCT FROM m.client
        AND started_at >= strptime(earlier || '-01', '%Y-%m-%d') AND started_at < strptime(now || '-01', '%Y-%m-%d') + INTERVAL 1 MONTH
    GROUP BY s.source, s.client, month, title
), rows AS (
    FROM of_cases UNION ALL FROM of_steps
), pairs AS (
    SELECT m.source, m.client, m.earlier, m.now, what, min(r) FILTER (WHERE month = earlier) AS a, min(r) FILTER (WHERE month = now) AS b
    FROM (SELECT source, client, month, what, {'times': CAST(times AS DOUBLE), 'lead_hours_p50': lead_hours_p50, 'wait_hours_mean': wait_hours_mean,
        'work_hours_mean': work_hours_mean, 'cost_usd_mean': cost_usd_mean, 'success_share': success_share} AS r FROM rows) AS rows
    JOIN months AS m ON rows.source = m.source AND rows.client IS NOT DISTINCT FROM m.client
    GROUP BY m.source, m.client, m.earlier, m.now, what
)
SELECT
    source, client, earlier AS month_before, now AS month, what, coalesce(a.times, 0) AS times_before, coalesce(b.times, 0) AS times,
    a.lead_hours_p50 AS lead_hours_p50_before, b.lead_hours_p50, a.wait_hours_mean AS wait_hours_mean_before, b.wait_hours_mean,
    a.work_hours_mean AS work_hours_mean_before, b.work_hours_mean, a.cost_usd_mean AS cost_usd_mean_before, b.cost_usd_mean,
    a.success_share AS success_share_before, b.success_share
FROM pairs
ORDER BY source, client, what <> 'all cases', abs(coalesce(b.wait_hours_mean, 0) * coalesce(b.times, 0) - coalesce(a.wait_hours_mean, 0) * coalesce(a.times, 0)) DESC, what;
