-- What the figures of the rank-1 workflows rest on: counted in history, priced from it, estimated, or a prior.
-- opus query evidence
SELECT
    o.client, o.contract, figure.name AS figure, figure.basis, count(*) AS steps,
    count(*) / sum(count(*)) OVER (PARTITION BY o.client, o.contract, figure.name) AS share,
    sum(t.evidence) AS cases_behind
FROM workflows_optimized AS o
JOIN workflows_tasks AS t USING (client, contract, workflow_id)
CROSS JOIN LATERAL (
    SELECT unnest([
        {name: 'success', basis: t.p_basis}, {name: 'cost', basis: t.cost_basis}, {name: 'duration', basis: t.duration_basis}
    ]) AS figure
) AS figures
WHERE o.rank = 1 AND t.kind IN ('task', 'review')
GROUP BY o.client, o.contract, figure.name, figure.basis
ORDER BY o.client, o.contract, figure.name, steps DESC, figure.basis;
