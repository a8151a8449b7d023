"""Generation turns a contract's intakes into published results.

The stages for one intake are composed in `flow`: request, retrieve, draft, plan and rank. Their records are in
`records`; `decisions` says what people's decisions mean for them.

In: contracts, intakes and a snapshot. Out: `generation/*` and `workflows/*`. Doors: `flow.generate` for one intake,
and `bulk.run.BulkRun` for a run.

Inside:
- `search`: node costs, bounds, Pareto labels, execution modes, reviews, local search and diversity;
- `planning`: from the Workflow Graph to ranked workflows: proposals, plans, Reward and Penalty, confidence;
- `bulk`: the same for the intakes of many contracts, in this process or on Spark executors;
- `results`: a contract's result as tables, and its publishing: rows, checks, changes and staleness.
"""
