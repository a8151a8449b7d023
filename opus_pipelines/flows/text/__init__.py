"""What an utterance says of a flow, without a catalogue: steps, loops, conditions, else, and wishes to edit.

In: the text of a person. Out: clauses in the order in which their steps are done, the parts of a condition, and the
parts of an edit. Doors: `clauses.clauses_of`, `conditions.read_condition` and `edit_texts.edits_in`.
"""
