"""The Large Work Model (LWM): task sequences for an Intention, and the Workflow Graph that merges them.

In: an Intention and a snapshot. Out: `TaskSequence` and `WFG` (Algorithms 1 and 2 of LWM). Doors:
`interface.LargeWorkModel`, `retrieval.snapshot_index.SnapshotIndex`, `merging.workflow_graph.workflow_graph` and
`training.train.train`.

Inside:
- `retrieval`: similar cases, critical tasks and precedence of history, and the tasks that rules mean;
- `stitching`: one plan for an intake that demands the work of several processes;
- `merging`: sequences joined to the Workflow Graph;
- `pointer`: the model of the next task, learnt from the cases of history;
- `step_writing`: writes steps as texts where history has no fixed catalogue of tasks;
- `next_step`: the networks behind both, and the writing of sequences from what they tell;
- `fine_tuning`: the upper layers of the sentence encoder, and the encoder of Intentions, trained;
- `language_models`: language models as backends: prompts, decoding within the catalogue, answers and their cost;
- `training`: models learnt from a snapshot, judged on held-out cases before they may serve.
"""
