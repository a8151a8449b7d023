"""Flows for many utterances: those of a contract as a batch in the lake, and the scores of a flow.

In: a contract's folder `flows` (CSV or JSON Lines of utterances, a catalogue). Out: rows of `flows/…`. Door:
`batch.contract_batch`.
"""
