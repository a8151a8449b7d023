"""The search: node costs, bounds, Pareto labels, execution modes, reviews, local search and diversity.

In: a Workflow Graph with costs and constraints. Out: the best paths and plans. Doors: `labels.best_paths` and
`local_search.LocalSearch`.
"""
