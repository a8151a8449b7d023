"""The Work Knowledge Graph: aggregates of sources, their sum, graph metrics, vectors, checks, drift, and the published
snapshot.

In: implementations of every source. Out: `wkg/<snapshot>`. Doors: `rebuild` for a rebuild, `snapshot.Snapshot` for
readers.
"""
