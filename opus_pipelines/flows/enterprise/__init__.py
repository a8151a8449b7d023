"""Flows of an enterprise platform: trigger, actions and flow logic as JSON, made from a requirement in two stages.

In: a requirement, or a flow as JSON, and a catalogue of steps, tables and columns. Out: a `FlowDocument`, checked and
compared with the catalogue. Doors: `composer.Composer`, `documents.read_document` and `validation.structure_errors`.
"""
