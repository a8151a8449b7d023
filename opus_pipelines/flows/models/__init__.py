"""Flows and edits by a language model, within the catalogue, whatever backend writes them.

In: what is learnt from a catalogue and flows (`flows.from_text`), an utterance, and for an edit the flow before it.
Out: a flow with what had to be repaired, tokens, dollars and seconds. Doors: `backends.chosen`, `made_flows.made_by`.
"""
