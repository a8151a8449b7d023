"""Flows by language models: of activities, and of an enterprise platform, both within their catalogue.

In: what is learnt from a catalogue and flows (`flows.from_text`), or a platform's catalogue; an utterance or a
requirement; for an edit the flow before it. Out: a flow with what had to be repaired, tokens, dollars and seconds.
Doors: `activity_flows.chosen`, `activity_flows.made_by` and `platform_flows.LanguageWriter`.
"""
