-- The $most most frequent variants of each source and client, as lists of titles, for the page of the process.
WITH variants AS (
    SELECT
        source, client, tasks, count(*) AS cases, median(lead_time_ms) / 3600000 AS lead_hours_p50, avg(cost_usd) AS cost_usd_a_case,
        avg(CAST(success AS INT)) AS success_share
    FROM process_cases
    WHERE $client IS NULL OR client = $client
    GROUP BY source, client, tasks
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY source, client ORDER BY cases DESC, tasks) AS variant FROM variants QUALIFY variant <= $most
), steps AS (
    SELECT source, client, variant, unnest(tasks) AS task_id, unnest(range(1, len(tasks) + 1)) AS position FROM ranked
), paths AS (
    SELECT source, client, variant, list(title ORDER BY position) AS activities
    FROM steps JOIN (SELECT task_id, title FROM wkg_tasks) USING (task_id)
    GROUP BY source, client, variant
)
SELECT r.source, r.client, r.variant, activities, cases, lead_hours_p50, cost_usd_a_case, success_share
FROM ranked AS r JOIN paths AS p ON r.source = p.source AND r.client IS NOT DISTINCT FROM p.client AND r.variant = p.variant
ORDER BY r.source, r.client, r.variant;
