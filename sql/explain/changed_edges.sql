-- Edges that came, went, or whose share of what follows src moved: those first over which most transitions go another way.
-- of_edges: how many there are; weight: the change as a part of the largest one.
WITH
    pairs AS (
        SELECT
            coalesce(n.src, o.src) AS src, coalesce(n.dst, o.dst) AS dst, o.transitions AS before, n.transitions AS after,
            coalesce(o.probability, 0) AS share_before, coalesce(n.probability, 0) AS share_after
        FROM old_edges AS o FULL JOIN wkg_edges AS n ON n.src = o.src AND n.dst = o.dst
    ),
    weighed AS (
        SELECT
            *, abs(share_after - share_before) * (sum(coalesce(before, 0)) OVER (PARTITION BY src) + sum(coalesce(after, 0)) OVER (PARTITION BY src))
                AS moved
        FROM pairs
    )
SELECT
    src, dst, before, after, share_before, share_after, coalesce(after, before) AS transitions,
    CASE WHEN before IS NULL THEN 'added' WHEN after IS NULL THEN 'removed' ELSE 'moved' END AS change,
    round(moved / max(moved) OVER (), 6) AS weight, count(*) OVER () AS of_edges
FROM weighed
WHERE before IS NULL OR after IS NULL OR abs(share_after - share_before) >= 0.001
ORDER BY moved DESC, src, dst
LIMIT $edges
