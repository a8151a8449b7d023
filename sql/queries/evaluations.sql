-- Mean scores of every evaluation, one row for each system: the whole pipeline, ablations, controls and bounds.
-- opus query evaluations
-- A refused or failed item counts as an empty plan.
SELECT
    evaluation, task_set, system, role, count(*) AS items, avg((status = 'generated')::INT) AS generated,
    avg(node_f1) AS node_f1, avg(link_f1) AS link_f1, avg("order") AS "order", avg(exact) AS exact, avg("first") AS "first",
    avg(f1_chain) AS f1_chain, avg(f1_graph) AS f1_graph, avg(graph_edit_similarity) AS graph_edit_similarity,
    any_value(model_version) AS model_version, any_value(snapshot) AS snapshot
FROM evaluations_items
GROUP BY evaluation, task_set, system, role
ORDER BY evaluation, list_position(['system', 'ablation', 'control', 'bound'], role), system;
