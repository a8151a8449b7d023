-- The sources of history whose cases a contract's figures rest on.
SELECT c.source, count(DISTINCT n.implementation_id) AS cases, max(n.similarity) AS nearest
FROM generation_neighbours AS n
JOIN wkg_cases AS c USING (implementation_id)
WHERE n.client = $client AND n.contract = $contract
GROUP BY c.source
ORDER BY cases DESC, c.source
