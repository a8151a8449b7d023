"""The Work Knowledge Graph: its rebuild, its checks, its drift, and its readers.

In: the history folder. Out: `wkg/<snapshot>`. Doors: `rebuild` (the chain of stages that publishes a snapshot) and
`snapshot.Snapshot` for readers.
"""
