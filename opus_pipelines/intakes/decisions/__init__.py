"""Decisions of people on ranked workflows: the record in the lake, an edited workflow file, and the decision as text.

In: a ranked workflow and what a person decided. Out: rows of `decisions`. Door:
`intakes.decisions.record.decisions_of`.
"""
