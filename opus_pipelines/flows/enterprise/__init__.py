"""Flows of an enterprise platform: trigger, actions and flow logic as JSON, made from a requirement in two stages.

In: a requirement, or a flow as JSON, and a catalogue of steps, tables and columns. Out: a `FlowDocument`, checked and
scored. Doors: `composer.Composer`, `flow_json.read`, `validation.structure_errors` and `scores.flow_scores`.
"""
