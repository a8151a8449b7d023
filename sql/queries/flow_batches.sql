-- The newest batch of flows of every contract: utterances by what became of them, calls, user tasks, and flows that are right.
-- opus query flow_batches
-- exact and baseline_exact count exact matches in the semantic reading; both are NULL where no utterance has a reference.
WITH
    newest AS (
        SELECT client, contract, max_by(batch, made_at) AS batch FROM flows_flows GROUP BY client, contract
    ),
    scored AS (
        SELECT
            client, contract, batch, count(*) FILTER (system <> 'baseline') AS scored,
            sum(exact_semantic) FILTER (system <> 'baseline') AS exact,
            sum(exact_semantic) FILTER (system = 'baseline') AS baseline_exact
        FROM flows_scores GROUP BY client, contract, batch
    )
SELECT
    client, contract, batch, count(*) AS utterances,
    count(*) FILTER (status = 'written') AS written, count(*) FILTER (status = 'refused') AS refused,
    count(*) FILTER (status = 'rejected') AS rejected, count(*) FILTER (status = 'failed') AS failed,
    sum(calls)::BIGINT AS calls, sum(user_tasks)::BIGINT AS user_tasks, avg(duration_ms) AS duration_ms,
    any_value(scored) AS scored, any_value(exact)::BIGINT AS exact, any_value(baseline_exact)::BIGINT AS baseline_exact,
    any_value(backend) AS backend, sum(repaired)::BIGINT AS repaired, sum(tokens_in)::BIGINT AS tokens_in,
    sum(tokens_out)::BIGINT AS tokens_out, sum(cost_usd) AS cost_usd
FROM flows_flows SEMI JOIN newest USING (client, contract, batch) LEFT JOIN scored USING (client, contract, batch)
GROUP BY client, contract, batch
ORDER BY client, contract;
