"""Reads history into the lake.

It decides which files changed, reads them in parallel, joins cases over files, and keeps the versions of sources.

In: the history folder. Out: `history/implementations`, `history/sources` and `history/rejects`. Door:
`history.ingestion.ingest.read_history`; `history.ingestion.onboarding` proposes settings for a new source.
"""
