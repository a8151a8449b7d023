-- The sources of history whose cases a contract's figures rest on; those of other clients are not named.
SELECT if(c.client IS NULL OR c.client = $client, c.source, 'other clients') AS source, count(DISTINCT n.implementation_id) AS cases, max(n.similarity) AS nearest
FROM generation_neighbours AS n
JOIN wkg_cases AS c USING (implementation_id)
WHERE n.client = $client AND n.contract = $contract
GROUP BY ALL
ORDER BY cases DESC, source
