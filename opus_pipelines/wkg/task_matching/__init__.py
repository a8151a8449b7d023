"""Task resolution: which raw names of which sources are one task, and the ids that tasks keep.

In: names, descriptions and neighbours of activities. Out: `wkg/aliases` and the id ledger. Door:
`wkg.task_matching.resolve.NightlyResolution`.
"""
