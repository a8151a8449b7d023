-- Every contract with a result or a folder: how many intakes, what became of them, whether they are stale and since what changed.
-- $declared: how many tasks the catalogues of contracts declare, as JSON.
-- $changes: what is known of the contracts' folders, as JSON; NULL where no folder was looked at: then only a newer snapshot tells.
WITH
    looked_at AS (
        SELECT unnest(from_json(coalesce($changes, '[]'), '[{"client": "VARCHAR", "contract": "VARCHAR", "changed": ["VARCHAR"]}]'), max_depth := 2)
    ),
    declared AS (
        SELECT unnest(from_json($declared, '[{"client": "VARCHAR", "contract": "VARCHAR", "declared_tasks": "BIGINT"}]'), max_depth := 2)
    ),
    counted AS (
        SELECT client, contract, count(*) AS intakes, count(*) FILTER (status = 'generated') AS generated,
            count(*) FILTER (status = 'refused') AS refused, count(*) FILTER (status = 'failed') AS failed
        FROM generation_intakes GROUP BY client, contract
    ),
    judged AS (
        SELECT
            client, contract, r.result, r.snapshot, r.published_at,
            CASE
                WHEN l.changed IS NOT NULL THEN l.changed
                WHEN $changes IS NOT NULL THEN ['its folder is gone']
                WHEN r.snapshot IS DISTINCT FROM getvariable('snapshot') THEN ['snapshot']
                ELSE []
            END AS changed
        FROM current_results AS r FULL JOIN looked_at AS l USING (client, contract)
    )
SELECT
    client, contract, result, snapshot, len(changed) > 0 AS stale, nullif(array_to_string(changed, ', '), '') AS changed, published_at,
    coalesce(intakes, 0) AS intakes, coalesce(generated, 0) AS generated, coalesce(refused, 0) AS refused, coalesce(failed, 0) AS failed,
    declared_tasks
FROM judged LEFT JOIN counted USING (client, contract) LEFT JOIN declared USING (client, contract)
ORDER BY client, contract
