"""Flows from utterances: a clause becomes an activity of the catalogue, clauses become a flow, or edits of one.

In: an utterance, a catalogue of activities, flows to learn from, and for an edit the flow. Out: a
`workflow.blocks.model.Flow` that calls activities of the catalogue only, or edit operations. Doors: `generator.learn`,
`editing.edited` and `retrieval.ActivityRetriever`.
"""
