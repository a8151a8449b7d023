-- The rules of a contract's documents that were not applied, each with its question where it asks one, and for how many intakes.
SELECT
    d.sentence, d.place, d.effect, d.asks, any_value(d.nearest) AS nearest, count(DISTINCT intake_id)::INTEGER AS intakes
FROM (
    SELECT intake_id, unnest(constraints) AS d
    FROM generation_intentions
    WHERE client = $client AND contract = $contract
)
WHERE d.sentence IS NOT NULL AND d.status = 'not applied'
GROUP BY d.sentence, d.place, d.effect, d.asks
ORDER BY d.asks IS NULL, intakes DESC, d.place, d.sentence, d.effect, d.asks
