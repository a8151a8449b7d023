"""One contract to published results: the stages for one intake, the run over many intakes, rows, checks and
publishing.

In: contracts, intakes and a snapshot. Out: `generation/*` and `workflows/*`. Doors: `flow.generate` for one intake,
`run.BulkRun` for a run.
"""
