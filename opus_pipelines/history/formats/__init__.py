"""Readers of historical files, one module per format: XES, CSV, Parquet, JSON Lines, OCEL, BPMN and n8n.

In: a file of a source. Out: raw records, passed to `history.records.assembler`. Doors:
`history.records.formats.format_of` finds a file's format, and `history.records.formats.Format.reader` gives the
function that reads it.
"""
