-- Utterances of the newest batch of every contract that have no flow, with file, line and reason.
-- opus query flow_refusals
-- rejected: the row cannot be read; refused: no flow can be made of it; failed: an error of the program.
WITH newest AS (
    SELECT client, contract, max_by(batch, made_at) AS batch FROM flows_flows GROUP BY client, contract
)
SELECT client, contract, file, line, item, status, reason_code, reason, left(utterance, 80) AS utterance
FROM flows_flows SEMI JOIN newest USING (client, contract, batch)
WHERE status <> 'written'
ORDER BY client, contract, file, line;
