"""How good workflows and flows are on a task set: scores beside simple controls.

In: a task set (requests with reference workflows) and a snapshot, utterances with reference flows, or requirements of a
platform. Out: rows by system and item of `evaluations/…`, and means with bootstrap intervals. Doors:
`evaluate.evaluate`, `utterances.evaluate_utterances` and `platform_flows.evaluation_of`.

Inside:
- `sample`: history and intakes of an invented company, drawn from a model whose truth is known.
"""
