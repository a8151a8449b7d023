"""The Workflow Graph: the dags of sequences, Algorithm 1 that joins them, and Algorithm 2 that joins its components.

In: task sequences, and the edges of the WKG between their tasks. Out: `WFG`. Doors: `sequence_dag`,
`workflow_graph.workflow_graph` and `join_components`.
"""
