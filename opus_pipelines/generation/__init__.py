"""Generation turns a contract's intakes into published results.

The stages for one intake are `request`, `retrieve`, `draft`, `plan` and `rank`, composed in `flow`; their records are
in `records`. `run` does them for many intakes, `results` holds rows, checks and publishing.

In: contracts, intakes and a snapshot. Out: `generation/*` and `workflows/*`. Doors: `flow.generate` for one intake,
`run.BulkRun` for a run.
"""
