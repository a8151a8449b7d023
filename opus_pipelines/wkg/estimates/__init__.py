"""From counts to figures with intervals.

The figures are success probabilities, critical tasks, waiting times, quantiles and next activities. In: aggregates and
cases of history. Out: figures with their basis, or a reason why a figure is unknown. Doors: `success`,
`critical_tasks`, `times`.
"""
