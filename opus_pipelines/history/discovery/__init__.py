"""Discovery: directly-follows edges and statistics of tasks of one log, read without making implementations of it.

A flat log (CSV, Parquet) is read by columns and counted by integer keys, in parts of whole cases that wait on disk, so
that memory stays flat. Cases with an unusual row, and all other logs, go through the ordinary reading. The counts are
those that mining has before task resolution.

In: a log file, or the folder of a source with its settings. Out: a table of edges, a table of tasks, and the counts of
records and cases.

Doors: `discover.discover`, `discover.settings_of_file`.
"""
