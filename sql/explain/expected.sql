-- What is to be expected when workflows are carried out: consecutive pairs of steps, events and outcomes, returns among them.
SELECT
    f.workflow_id, f.src, f.dst, f.src_kind, f.dst_kind, f.src_place, f.dst_place, f.support,
    coalesce(a.title, f.src_task_key) AS src_title, coalesce(b.title, f.dst_task_key) AS dst_title
FROM workflows_expected_flow AS f
LEFT JOIN wkg_tasks AS a ON a.task_id = f.src
LEFT JOIN wkg_tasks AS b ON b.task_id = f.dst
WHERE f.workflow_id = ANY($workflows)
ORDER BY f.src_place, f.dst_place
