-- Every contract with a result: how many intakes, what became of them, and whether a newer snapshot makes it stale.
SELECT
    r.client, r.contract, r.result, r.snapshot, r.snapshot IS DISTINCT FROM getvariable('snapshot') AS stale, r.published_at,
    coalesce(i.intakes, 0) AS intakes, coalesce(i.generated, 0) AS generated, coalesce(i.refused, 0) AS refused, coalesce(i.failed, 0) AS failed
FROM current_results AS r
LEFT JOIN (
    SELECT client, contract, count(*) AS intakes, count(*) FILTER (status = 'generated') AS generated,
        count(*) FILTER (status = 'refused') AS refused, count(*) FILTER (status = 'failed') AS failed
    FROM generation_intakes GROUP BY client, contract
) AS i USING (client, contract)
ORDER BY r.client, r.contract
