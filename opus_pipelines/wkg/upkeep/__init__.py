"""What happens to published snapshots and results: the pointer, retention, rollback, erasure of a client, and remake.

In: a lake with its published snapshots and results. Out: the pointer, the rows of `wkg/changes`, and a lake without
what is past retention or of a forgotten client. Doors: `rollback.point`, `retention.prune`, `rollback.roll_back`,
`erasure.carry_out` and `remake.compare_remade`.
"""
