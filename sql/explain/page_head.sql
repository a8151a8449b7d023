-- A contract's result: what it was made from, and what became of its intakes.
SELECT
    r.client, r.contract, r.result, r.snapshot, r.model_version, r.published_at, r.snapshot IS DISTINCT FROM getvariable('snapshot') AS stale,
    coalesce(i.intakes, 0) AS intakes, coalesce(i.generated, 0) AS generated, coalesce(i.refused, 0) AS refused, coalesce(i.failed, 0) AS failed,
    g.code_version, g.settings_hash
FROM current_results AS r
LEFT JOIN (
    SELECT client, contract, count(*) AS intakes, count(*) FILTER (status = 'generated') AS generated,
        count(*) FILTER (status = 'refused') AS refused, count(*) FILTER (status = 'failed') AS failed
    FROM generation_intakes GROUP BY client, contract
) AS i USING (client, contract)
LEFT JOIN generation_runs AS g USING (client, contract, result)
WHERE ($client IS NULL OR r.client = $client) AND ($contract IS NULL OR r.contract = $contract)
ORDER BY r.client, r.contract
