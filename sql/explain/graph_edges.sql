-- The strongest edges, of an industry or around a task (NULL = all): nearest to the task first, then by gamma and transitions.
-- of_edges, of_transitions: what they were chosen from.
WITH RECURSIVE
    inside AS (SELECT task_id FROM wkg_tasks WHERE $industry IS NULL OR list_contains(industries, $industry)),
    scope AS (
        SELECT * FROM wkg_edges
        WHERE src IN (SELECT task_id FROM inside) AND dst IN (SELECT task_id FROM inside)
    ),
    steps AS (SELECT src AS a, dst AS b FROM scope UNION SELECT dst, src FROM scope),
    walk AS (
        SELECT $around AS task_id, 0 AS hop WHERE $around IS NOT NULL
        UNION
        SELECT steps.b, walk.hop + 1 FROM walk JOIN steps ON steps.a = walk.task_id WHERE walk.hop < $hops
    ),
    near AS (SELECT task_id, min(hop) AS hop FROM walk GROUP BY task_id)
SELECT
    e.src, e.dst, e.transitions, e.variants, e.gamma, e.probability, e.wait_ms_mean,
    count(*) OVER () AS of_edges, (sum(e.transitions) OVER ())::BIGINT AS of_transitions
FROM scope AS e
LEFT JOIN near AS a ON a.task_id = e.src
LEFT JOIN near AS b ON b.task_id = e.dst
WHERE $around IS NULL OR (a.hop IS NOT NULL AND b.hop IS NOT NULL)
ORDER BY least(a.hop, b.hop), e.gamma DESC, e.transitions DESC, e.src, e.dst
LIMIT $edges
