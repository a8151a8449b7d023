"""The Workflow W = (G, Φ) of EVAL A1: its model, checks, constraints, and its file formats in `workflow.formats`.

In: nodes and edges, or a file. Out: a valid `Workflow`, or a file. Doors: `model.Workflow` and `files.read_file`.
"""
