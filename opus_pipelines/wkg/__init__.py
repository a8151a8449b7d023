"""The Work Knowledge Graph: from implementations to a published snapshot, its upkeep, and its readers.

In: the implementations in the lake. Out: `wkg/<snapshot>`. Doors: `rebuild.stages` (the chain of stages that publishes
a snapshot), `nightly.steps` (the same as steps that can run alone) and `snapshot.Snapshot` for readers.

Inside:
- `task_matching`: which raw names of which sources are one task, and the ids that tasks keep;
- `mining`: the aggregates of sources, counted by DuckDB in this process or by Spark;
- `estimates`: from counts to figures with intervals;
- `rebuild`: the stages of a rebuild, their records, and the tables, vectors and manifest that they write;
- `nightly`: the steps of a rebuild, each of which finds in the lake what earlier steps left there;
- `upkeep`: the pointer, retention, rollback, the erasure of a client, and the comparison with a rebuild in full.
"""
