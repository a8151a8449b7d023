"""How good generated workflows are on a task set: scores beside simple controls, and what each part is worth.

In: a task set (requests with reference workflows) and a snapshot. Out: `evaluations/items`, one row per system and
item, and a table with bootstrap intervals. Door: `evaluate.evaluate`.

Inside:
- `sample`: history and intakes of an invented company, drawn from a model whose truth is known.
"""
