-- Lead time by source, client and month in which the case ended: median, 90th percentile, mean, and the share that is working time.
-- opus query process_lead_times --set client=CLIENT --set source=SOURCE
-- Cases that probably have not ended are left out. `work_share` is NULL where the working time of a step is unknown; in parallel work it may exceed 1.
SELECT
    source, client, strftime(ended_at, '%Y-%m') AS month, count(*) AS cases, median(lead_time_ms) / 3600000 AS lead_hours_p50,
    quantile_cont(lead_time_ms, 0.9) / 3600000 AS lead_hours_p90, avg(lead_time_ms) / 3600000 AS lead_hours_mean,
    sum(work_ms) / nullif(sum(lead_time_ms) FILTER (WHERE work_ms IS NOT NULL), 0) AS work_share
FROM process_cases
WHERE ended_at IS NOT NULL AND coalesce(p_ended, 1) >= 0.5
    AND coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
    AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
GROUP BY source, client, month
ORDER BY source, client, month;
