"""Writers of enterprise flows side by side: baselines and language models, their quality, cost and seconds per flow.

In: requirements with flows, a catalogue, a model or an endpoint. Out: flows within the catalogue, and rows of the
dataset evaluations/flows. Doors: `language_writers.LanguageWriter`, `model_comparison.written` and
`flow_records.publish`.
"""
