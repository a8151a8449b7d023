-- Rules that were read in the documents and bind the workflows: the sentence, the document, its place on the page or slide, and for how many intakes.
-- opus query rules_in_force
SELECT
    client, contract, d.kind, d.value, d.sentence, any_value(e.role || '/' || e.name) AS document, d.place, count(DISTINCT intake_id) AS intakes
FROM (SELECT client, contract, intake_id, unnest(constraints) AS d FROM generation_intentions)
LEFT JOIN (SELECT DISTINCT client, contract, intake_id, unnest(elements) AS e FROM generation_intakes) USING (client, contract, intake_id)
WHERE d.sentence IS NOT NULL AND d.status = 'in force' AND (e IS NULL OR e.element_id = d.element_id)
GROUP BY client, contract, d.kind, d.value, d.sentence, d.element_id, d.place
ORDER BY client, contract, document, d.place, d.sentence, d.kind, d.value;
