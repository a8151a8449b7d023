"""Flows for many utterances: those of a contract as a batch in the lake, and those of a task set with their scores.

In: a contract's folder `flows` (CSV or JSON Lines of utterances, a catalogue), or a task set with references. Out: rows
of `flows/…` and `evaluations/utterances`. Doors: `batch.contract_batch` and `evaluation.evaluate`.
"""
