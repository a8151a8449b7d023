-- What changed: rank-1 workflows against the result before, tasks and edges against the snapshot before, each with the cases behind it.
-- opus query changes
-- Tasks and edges that came or went first, then by how much a figure moved. wkg_changes and workflows_changes hold every figure.
WITH
    workflows AS (
        SELECT
            1 AS part, 'workflow' AS what, c.client || ' / ' || c.contract || ' / ' || c.folder AS which, c.change,
            CASE
                WHEN c.change IN ('figures', 'order') THEN 'reward ' || coalesce(round(c.reward_usd_before, 2)::VARCHAR, '- (no gain stated)')
                    || ', success ' || coalesce(round(c.success_before, 3)::VARCHAR, 'unknown') || coalesce(', ' || c.verdict_before, '')
                ELSE array_to_string(c.steps_before, ' > ')
            END AS before,
            CASE
                WHEN c.change IN ('figures', 'order') THEN 'reward ' || coalesce(round(c.reward_usd_after, 2)::VARCHAR, '- (no gain stated)')
                    || ', success ' || coalesce(round(c.success_after, 3)::VARCHAR, 'unknown') || coalesce(', ' || c.verdict_after, '')
                ELSE array_to_string(c.steps_after, ' > ')
            END AS after,
            coalesce(nullif(array_to_string(c.because, ', '), ''), 'files of the contract') AS because,
            c.sources, c.cases, c.implementation_ids,
            CASE WHEN c.change = 'figures' THEN 0 ELSE 1 END AS weight
        FROM workflows_changes AS c
        JOIN current_results AS r ON r.client = c.client AND r.contract = c.contract AND r.result = c.result AND r.before = c.before
    ),
    graph AS (
        SELECT
            CASE c.kind WHEN 'task' THEN 2 ELSE 3 END AS part, c.kind AS what,
            c.title || coalesce(' > ' || c.dst_title, '') AS which,
            CASE WHEN c.change = 'changed' THEN c.figure ELSE c.change END AS change,
            coalesce(c.text_before, round(c.value_before, 4)::VARCHAR) AS before, coalesce(c.text_after, round(c.value_after, 4)::VARCHAR) AS after,
            c.because, c.sources, c.cases_added + c.cases_removed + c.cases_changed AS cases, c.implementation_ids,
            CASE
                WHEN c.change <> 'changed' OR c.figure IN ('critical_in', 'title') THEN 1 + coalesce(c.value_after, c.value_before, 0)
                ELSE coalesce(abs(c.value_after - c.value_before) / nullif(greatest(abs(c.value_after), abs(c.value_before)), 0), 1)
            END AS weight
        FROM wkg_changes AS c
        JOIN current_snapshot AS s ON s.snapshot = c.snapshot AND s.before = c.before
    )
SELECT what, which, change, before, after, because, sources, cases, implementation_ids
FROM (FROM workflows UNION ALL BY NAME FROM graph)
ORDER BY part, weight DESC, which, change
