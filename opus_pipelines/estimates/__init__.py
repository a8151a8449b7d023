"""From counts to figures with intervals: success probabilities, critical tasks, waiting times, quantiles, next
activities.

In: aggregates and cases of history. Out: figures with their basis, or a reason why a figure is unknown. Doors:
`success_probabilities`, `critical_tasks`, `waiting_times`, `step_times`.
"""
