-- What the process costs and which activity drives it: the cost of each activity, its share, its mean, and how much of it is known.
-- opus query process_costs --set client=CLIENT --set source=SOURCE
-- `known_share`: of the times that the activity was done, those whose cost is known; the others are in no figure.
SELECT
    source, client, title AS activity, count(*) AS steps, count(cost_usd) / count(*) AS known_share, sum(cost_usd) AS cost_usd,
    sum(cost_usd) / nullif(sum(sum(cost_usd)) OVER (PARTITION BY source, client), 0) AS share, avg(cost_usd) AS cost_usd_mean,
    quantile_cont(cost_usd, 0.9) AS cost_usd_p90, sum(work_ms) / 3600000 AS work_hours
FROM (SELECT source, client, task_id, cost_usd, work_ms FROM process_steps) JOIN (SELECT task_id, title FROM wkg_tasks) USING (task_id)
WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
    AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
GROUP BY source, client, title
ORDER BY source, client, cost_usd DESC NULLS LAST, steps DESC, activity;
