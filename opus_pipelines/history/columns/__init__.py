"""Reads event logs by columns: whole blocks of cases at a time, with the same result as record by record.

It splits CSV bytes into columns, tells which rows need the reading by records, groups the rest by case, and builds
Task Implementations from columns.

In: bytes of CSV, Arrow batches of rows, or columns of whole cases. Out: implementations as Arrow batches, passed to
`history.records.assembler`, and the rows that must be read by records. Doors: `history.columns.flat_log.FlatLog`,
`history.columns.csv_blocks.CsvSplitter` and `history.columns.cases.CaseBlocks`.
"""
