"""Checks of a rebuild: the datasets of a snapshot, its figures, its drift from the last one, and lost cases.

In: staged datasets. Out: results of checks, with the first offenders of each that failed. Doors:
`checks.check_snapshot`, `figure_checks`, `drift` and `loss`.
"""
