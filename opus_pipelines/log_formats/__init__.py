"""Readers of historical files, one module per format: XES, CSV, Parquet, JSON Lines, OCEL, BPMN and n8n.

In: a file of a source. Out: raw records, passed to `event_logs.assembler`. Doors: `event_logs.formats.format_of` finds
a file's format, and `event_logs.formats.Format.reader` gives the function that reads it.
"""
