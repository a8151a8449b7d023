"""Models of flow generation that are trained beside the ranker: a fine-tuned encoder, and a tagger of structure.

In: tasks with known flows, and a catalogue. Out: weights of the sentence encoder, or a reader of clauses, that
`flows.from_text` uses instead of the plain encoder or of the rules. Doors: `activity_encoder.train_encoder`,
`structure_readers.with_structure` and `writers.flow_writer`.
"""
