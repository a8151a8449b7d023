"""Readers of historical files, one module per format: XES, CSV, Parquet, JSON Lines, OCEL, BPMN and n8n.

In: a file of a source. Out: raw records, passed to `event_logs.assembler`. Door: the function `read` of each module,
found through `event_logs.formats`.
"""
