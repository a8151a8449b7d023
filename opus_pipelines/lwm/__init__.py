"""The Large Work Model: sequences of tasks for an Intention, and the Workflow Graph that merges them (Algorithms 1 and
2 of LWM).

In: an Intention and its subgraphs. Out: `TaskSequence` and `WFG`. Doors: `interface.LargeWorkModel` and
`workflow_graph.workflow_graph`.
"""
