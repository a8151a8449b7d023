-- The cases nearest to an intake: its baseline.
SELECT count(*) AS cases, min(n.similarity) AS least, max(n.similarity) AS most, list(DISTINCT c.source ORDER BY c.source) AS sources,
    count(*) FILTER (c.success) AS succeeded, count(c.success) AS known
FROM generation_neighbours AS n
LEFT JOIN wkg_cases AS c USING (implementation_id)
WHERE n.intake_id = $intake_id AND n.intention_id = $intention_id
