"""What history says about a request: similar cases, critical tasks, precedence, and which tasks its rules mean.

In: a request and a snapshot. Out: similar cases and resolved constraints. Doors: `snapshot_index.SnapshotIndex` and
`intentions.intentions`.
"""
