"""History into the lake: which files changed, reading them side by side, joining cases over files, and versions of
sources.

In: the history folder. Out: `history/implementations`, `history/sources` and `history/rejects`. Door:
`ingestion.ingest.read_history`; `ingestion.onboarding` proposes settings for a new source.
"""
