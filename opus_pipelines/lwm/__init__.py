"""The Large Work Model (LWM): task sequences for an Intention, and the Workflow Graph that merges them.

In: an Intention and a snapshot. Out: `TaskSequence` and `WFG` (Algorithm 1 of LWM). Doors:
`interface.LargeWorkModel`, `retrieval.snapshot_index.SnapshotIndex`, `workflow_graph.workflow_graph` and
`training.train.train`.

Inside:
- `interface`: what generation asks of a backend; `history_backend`: one that needs no training; `pointer_backend`: one
  with the trained models;
- `precedence`: the order of tasks; `workflow_graph`: sequences joined to the Workflow Graph;
- `stitching`: one plan for an intake that demands the work of several processes;
- `next_step`: the network behind both models below, and the writing of sequences from what it tells;
- `retrieval`: similar cases, critical tasks, and the tasks that names and rules mean;
- `pointer`: the model of the next task, learnt from the cases of history;
- `step_writing`: writes steps as texts where history has no fixed catalogue of tasks;
- `fine_tuning`: the upper layers of the sentence encoder, and the encoder of Intentions, trained;
- `language_models`: language models as backends: prompts, decoding within the catalogue, answers and their cost;
- `training`: models learnt from a snapshot, judged on held-out cases before they may serve.
"""
