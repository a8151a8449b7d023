"""Parts of the graph: neighbourhoods (LWM (7)), Steiner trees with all their edges (LWM (8)), and random walks.

In: a graph and some of its tasks. Out: smaller graphs, and how likely a walk visits a task. Doors: `neighbourhoods`,
`steiner_tree` and `walks`.
"""
