"""The step from raw records to Task Implementations.

Its modules read the settings of a source, map columns, read times and money, pair lifecycle transitions, compute costs
and outcomes, and protect private data.

In: raw records of any log format. Out: implementations as Arrow batches, and rejects with reasons. Door:
`history.records.assembler.Assembler`.
"""
