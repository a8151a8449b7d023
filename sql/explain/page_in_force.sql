-- The rules that were read in a contract's documents and bind its workflows, each with its place, and for how many intakes.
SELECT d.kind, d.value, d.sentence, d.place, count(DISTINCT intake_id)::INTEGER AS intakes
FROM (
    SELECT intake_id, unnest(constraints) AS d
    FROM generation_intentions
    WHERE client = $client AND contract = $contract
)
WHERE d.sentence IS NOT NULL AND d.status = 'in force'
GROUP BY d.kind, d.value, d.sentence, d.place
ORDER BY intakes DESC, d.place, d.sentence, d.kind, d.value
