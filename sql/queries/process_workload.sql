-- Who does what, and the workload by week: the steps and the working hours of each person and activity, the newest week first.
-- opus query process_workload --set client=CLIENT --set source=SOURCE --set actor=PERSON
-- A week begins on Monday and is that of the start of the step, in UTC. Hours are NULL where no working time is known.
WITH done AS (
    SELECT
        source, client, actor, task_id, CAST(floor((epoch(started_at) - 345600) / 604800) AS INT) AS week, count(*) AS steps,
        sum(work_ms) / 3600000 AS work_hours
    FROM process_steps
    WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
        AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
        AND coalesce(actor = getvariable('actor')::VARCHAR, getvariable('actor') IS NULL)
    GROUP BY source, client, actor, task_id, week
)
SELECT source, client, DATE '1970-01-05' + 7 * week AS week_from, actor, title AS activity, steps, work_hours
FROM done JOIN wkg_tasks USING (task_id)
ORDER BY source, client, week DESC NULLS LAST, steps DESC, actor, activity;
