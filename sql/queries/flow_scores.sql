-- Mean scores, cost and time per flow of every writer of enterprise flows, on requirements that it did not learn from.
-- opus query flow_scores
-- flowsim compares with inputs, outline without; valid is 0 for a flow with a structure error.
SELECT
    evaluation, kind, model, count(*) AS flows,
    avg(flowsim) AS flowsim, avg(flowsim_outline) AS outline, avg(valid_flowsim) AS valid, avg(tree_bleu) AS tree_bleu,
    avg(trigger_match) AS trigger_match, avg(component_match) AS component_match, avg(bag_of_steps) AS bag_of_steps,
    avg((structure_errors > 0)::INT) AS with_errors, avg(hallucinated_steps) AS hallucinated_steps,
    avg(hallucinated_tables) AS hallucinated_tables, avg(repairs) AS repairs, avg(duration_ms) AS duration_ms, avg(cost_usd) AS cost_usd,
    count(problem) AS failed
FROM evaluations_flows
WHERE part = 'held out'
GROUP BY evaluation, kind, model
ORDER BY evaluation, kind, flowsim DESC, model;
