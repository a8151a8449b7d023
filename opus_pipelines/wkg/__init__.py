"""The Work Knowledge Graph: from implementations to a published snapshot, its upkeep, and its readers.

In: the implementations in the lake. Out: `wkg/<snapshot>`. Doors: `rebuild.steps` (the chain of steps that
publishes a snapshot) and `snapshot.Snapshot` for readers.

Inside:
- `task_matching`: which raw names of which sources are one task, and the ids that tasks keep;
- `mining`: the aggregates of sources, counted by DuckDB in this process or by Spark;
- `estimates`: from counts to figures with intervals;
- `rebuild`: the steps of a rebuild, each of which finds in the lake what earlier steps left there, and what they write;
- `upkeep`: the pointer, retention, rollback, the erasure of a client, and the comparison with a rebuild in full.
"""
