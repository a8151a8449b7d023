-- The newest flows of enterprise platforms: trigger, steps and structure errors of each requirement, or why there is no flow.
-- opus query platform_flows
WITH
    newest AS (
        SELECT client, contract, max_by(batch, made_at) AS batch FROM flows_flows GROUP BY client, contract
    ),
    platforms AS (
        SELECT DISTINCT client, contract, batch FROM flows_catalogue WHERE origin = 'flows/catalogue.toml'
    )
SELECT
    client, contract, item, status, json_extract_string(document, '$.trigger.type') AS "trigger", steps, structure_errors,
    reason, utterance
FROM flows_flows SEMI JOIN newest USING (client, contract, batch) SEMI JOIN platforms USING (client, contract, batch)
ORDER BY client, contract, file, line;
