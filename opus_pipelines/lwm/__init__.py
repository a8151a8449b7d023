"""The Large Work Model (LWM): task sequences for an Intention, and the Workflow Graph that merges them.

In: an Intention and its subgraphs. Out: `TaskSequence` and `WFG` (Algorithms 1 and 2 of LWM). Doors:
`interface.LargeWorkModel` and `workflow_graph.workflow_graph`.
"""
