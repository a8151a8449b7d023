-- The best workflow of each Intention of the client, and how many cases a month of the client's history are most like it, for `opus bid`.
-- A case is like the workflow with which it shares the largest part of both their tasks, if that is at least half. It counts in equal parts for
-- workflows that it is as like to.
WITH best AS (
    SELECT o.*, i.folder AS intake
    FROM workflows_optimized AS o JOIN generation_intakes AS i USING (client, contract, intake_id)
    WHERE o.rank = 1 AND client = $client AND ($contract IS NULL OR contract = $contract)
), planned AS (
    SELECT workflow_id, list_distinct(list(task_id)) AS planned_tasks
    FROM workflows_tasks JOIN best USING (client, contract, workflow_id)
    WHERE workflows_tasks.kind = 'task'
    GROUP BY workflow_id
), done AS (
    SELECT list_sort(list_distinct(tasks)) AS done_tasks, count(*) AS cases FROM process_cases WHERE client = $client GROUP BY done_tasks
), likeness AS (
    SELECT
        workflow_id, done_tasks, cases, len(list_intersect(planned_tasks, done_tasks)) AS shared,
        shared / (len(planned_tasks) + len(done_tasks) - shared) AS alike
    FROM planned, done
    QUALIFY alike >= 0.5 AND alike = max(alike) OVER (PARTITION BY done_tasks)
), counted AS (
    SELECT workflow_id, sum(part) AS cases
    FROM (SELECT workflow_id, cases / count(*) OVER (PARTITION BY done_tasks) AS part FROM likeness)
    GROUP BY workflow_id
), observed AS (
    SELECT greatest(1, date_diff('day', min(started_at), max(started_at)) / 30.4375) AS months FROM process_cases WHERE client = $client
)
SELECT
    contract, intake, workflow_id, title, verdict, tasks + reviews AS steps, cost_usd, cost_assumed_share, cost_unknown_steps,
    coalesce(repetition_usd, 0) AS repetition_usd, case_cost_usd AS history_cost_usd, similar_cases, success_probability, start_success_low, start_success_high,
    lead_time_ms_p50 / 3600000 AS lead_hours_p50, lead_time_ms_p90 / 3600000 AS lead_hours_p90, deadline_hours, p_deadline,
    counted.cases / months AS cases_a_month
FROM best LEFT JOIN counted USING (workflow_id), observed
ORDER BY contract, intake, workflow_id;
