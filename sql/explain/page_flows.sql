-- The utterances of the newest batch of flows of every contract, or of one, with the scores of those that have a reference.
SELECT f.*, s.exact_semantic, s.activity_f1
FROM flows_flows AS f
SEMI JOIN (
    SELECT client, contract, max_by(batch, made_at) AS batch FROM flows_flows GROUP BY client, contract
) AS newest USING (client, contract, batch)
LEFT JOIN flows_scores AS s
    ON s.client = f.client AND s.contract = f.contract AND s.batch = f.batch AND s.item = f.item
    AND s.system = 'flow writer' AND f.status <> 'rejected'
WHERE f.client = coalesce($client, f.client) AND f.contract = coalesce($contract, f.contract)
ORDER BY f.client, f.contract, f.file, f.line
LIMIT $most;
