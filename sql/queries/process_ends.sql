-- Where cases begin and end: the first and the last activity of the cases of each source and client, with their share.
-- opus query process_ends --set client=CLIENT --set source=SOURCE
-- Cases that probably have not ended stand under `goes on after`.
WITH ends AS (
    SELECT source, client, 'begins with' AS place, tasks[1] AS task_id, success, lead_time_ms FROM process_cases WHERE steps > 0
    UNION ALL
    SELECT source, client, if(coalesce(p_ended, 1) < 0.5, 'goes on after', 'ends with'), tasks[-1], success, lead_time_ms FROM process_cases WHERE steps > 0
)
SELECT
    source, client, place, title AS activity, count(*) AS cases,
    count(*) / sum(count(*)) OVER (PARTITION BY source, client, place = 'begins with') AS share,
    avg(CAST(success AS INT)) AS success_share, median(lead_time_ms) / 3600000 AS lead_hours_p50
FROM ends JOIN wkg_tasks USING (task_id)
WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
    AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
GROUP BY source, client, place, title
ORDER BY source, client, place, cases DESC, activity;
