"""Flows in files of other programs: Mermaid, n8n, DMN tables, and workflows W = (G, Φ).

In: a file of another program, or a flow. Out: a `Flow`, or a file. Doors: `workflow.blocks.formats.registry.read_flow`,
`workflows.flow_of` and `workflows.workflow_of`. `turns` keeps the record of a file's edits, which undo reads.
"""
