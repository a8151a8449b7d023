"""Retrieval: similar cases, critical tasks and precedence of history for a request, and the tasks that its rules mean.

In: a request and a snapshot. Out: similar cases and resolved constraints. Doors: `snapshot_index.SnapshotIndex` and
`intentions.intentions`.
"""
