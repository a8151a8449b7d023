-- How many cases and variants each source and client has, over which time, how long cases take, what they cost and how many succeed.
-- opus query process_summary --set client=CLIENT --set source=SOURCE
-- A variant is a sequence of tasks. `running` cases have probably not ended; times and successes are of all cases where they are known.
SELECT
    source, client, count(*) AS cases, sum(steps) AS steps, count(DISTINCT tasks) AS variants, min(started_at) AS first_start, max(ended_at) AS last_end,
    count(*) FILTER (WHERE p_ended < 0.5) AS running, median(lead_time_ms) / 3600000 AS lead_hours_p50, quantile_cont(lead_time_ms, 0.9) / 3600000 AS lead_hours_p90,
    avg(CAST(success AS INT)) AS success_share, sum(cost_usd) AS cost_usd, avg(cost_usd) AS cost_usd_a_case
FROM process_cases
WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
    AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
GROUP BY source, client
ORDER BY source, client;
