-- Rules of the documents that no constraint expresses, why, and the question to a person where a phrase could not be matched with an activity.
-- opus query rules_not_applied
SELECT
    client, contract, d.place, d.sentence, d.effect, d.asks, any_value(d.nearest) AS nearest, count(DISTINCT intake_id) AS intakes
FROM (SELECT client, contract, intake_id, unnest(constraints) AS d FROM generation_intentions)
WHERE d.sentence IS NOT NULL AND d.status = 'not applied'
GROUP BY client, contract, d.place, d.sentence, d.effect, d.asks
ORDER BY client, contract, d.place, d.sentence, d.effect, d.asks;
