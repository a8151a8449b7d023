-- The cases nearest to an intake: its baseline. Sources of other clients are not named.
SELECT count(*) FILTER (d.decision_id IS NULL) AS cases, count(*) FILTER (n.is_compared) AS compared, min(n.similarity) FILTER (d.decision_id IS NULL) AS least,
    max(n.similarity) FILTER (d.decision_id IS NULL) AS most, count(d.decision_id) AS decisions,
    list_sort(list(DISTINCT if(c.client IS NULL OR c.client = n.client, c.source, 'other clients')) FILTER (d.decision_id IS NULL))
        AS sources,
    count(*) FILTER (c.success) AS succeeded, count(c.success) AS known
FROM generation_neighbours AS n
LEFT JOIN wkg_cases AS c USING (implementation_id)
LEFT JOIN decisions AS d ON d.decision_id = n.implementation_id
WHERE n.intake_id = $intake_id AND n.intention_id = $intention_id
