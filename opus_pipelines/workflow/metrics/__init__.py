"""How alike a generated workflow and a reference are: sequence, graph and tree metrics of the related papers.

In: two workflows as texts, sequences, graphs or flow trees. Out: figures between 0 and 1, each with its definition and
source. Doors: `opus_metrics.opus_metrics`, `worfbench.chain_scores`, `worfbench.graph_scores`,
`plan_scores.graph_edit_distance`, `flow_similarity.flow_similarity`, `plan_scores.plan_scores`.
"""
