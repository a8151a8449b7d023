"""Block-structured flows: sequence, if, for, while, parallel, user task and call; their formats, edits and difference.

In: a file in one of the formats, or edit operations. Out: a `Flow`, or a file. Doors: `formats.registry.read_flow`,
`formats.registry.written`, `edits.applied` and `difference.difference`.
"""
