"""The Workflow W = (G, Φ) of EVAL A1, and flows with blocks: models, checks, file formats, worth and likeness.

In: nodes and edges, statements in blocks, or a file. Out: a valid `Workflow` or `Flow`, its figures, or a file. Doors:
`model.Workflow`, `formats.registry.read_file`, `evaluation.reward.evaluate` and `blocks.formats.registry.read_flow`.

Inside:
- `formats`: how a workflow is written for another program or a person, and read back: BPMN, Mermaid, JSON, YAML;
- `evaluation`: what a workflow is worth by EVAL: success, cost, schedule, lead time, Reward, Penalty, uncertainty;
- `blocks`: flows of sequence, if, for, while, parallel, user task and call; their formats, edits and difference;
- `metrics`: how alike a generated workflow and a reference are.
"""
