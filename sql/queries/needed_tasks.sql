-- The tasks that history needs: success of the cases with and without them.
-- opus query needed_tasks
SELECT
    n.industry, n.client, n.kind_of_case, t.title AS task, n.needed, n.lift, n.lift_lower, n.lift_upper,
    n.cases_with, n.success_with / nullif(n.cases_with, 0) AS rate_with,
    n.cases_without, n.success_without / nullif(n.cases_without, 0) AS rate_without, n.task_id
FROM wkg_needs AS n
JOIN wkg_tasks AS t USING (task_id)
ORDER BY n.industry, n.client, n.kind_of_case, n.needed DESC, n.lift DESC, n.task_id;
