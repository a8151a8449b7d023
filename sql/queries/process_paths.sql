-- The usual path and its share: the 50 most frequent variants of each source and client, with lead time, cost and success.
-- opus query process_paths --set client=CLIENT --set source=SOURCE
-- A variant is a sequence of tasks. `share_so_far`: of the cases in this variant and the more frequent ones.
WITH variants AS (
    SELECT
        source, client, tasks, count(*) AS cases, median(lead_time_ms) / 3600000 AS lead_hours_p50, avg(cost_usd) AS cost_usd_a_case,
        avg(CAST(success AS INT)) AS success_share
    FROM process_cases
    WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
        AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
    GROUP BY source, client, tasks
), ranked AS (
    SELECT
        *, row_number() OVER most AS variant, cases / sum(cases) OVER (PARTITION BY source, client) AS share,
        sum(cases) OVER most / sum(cases) OVER (PARTITION BY source, client) AS share_so_far
    FROM variants
    WINDOW most AS (PARTITION BY source, client ORDER BY cases DESC, tasks)
    QUALIFY variant <= 50
), steps AS (
    SELECT source, client, variant, unnest(tasks) AS task_id, unnest(range(1, len(tasks) + 1)) AS position FROM ranked
), paths AS (
    SELECT source, client, variant, string_agg(title, ' → ' ORDER BY position) AS path
    FROM steps JOIN wkg_tasks USING (task_id)
    GROUP BY source, client, variant
)
SELECT ranked.source, ranked.client, ranked.variant, cases, share, share_so_far, len(tasks) AS steps, lead_hours_p50, cost_usd_a_case, success_share, path
FROM ranked JOIN paths ON ranked.source = paths.source AND ranked.client IS NOT DISTINCT FROM paths.client AND ranked.variant = paths.variant
ORDER BY ranked.source, ranked.client, ranked.variant;
