"""History: from the files of a company's past work to Task Implementations in the lake.

In: the history folder, with event logs and models of processes. Out: `history/implementations`, `history/sources` and
`history/rejects`. Doors: `ingestion.ingest.read_history`, and `discovery.discover.discover` for one log alone.

Inside:
- `formats`: readers of files, one module for each format: XES, CSV, Parquet, JSON Lines, OCEL, BPMN and n8n;
- `columns`: reads flat logs by columns, whole blocks of cases at a time, with the same result as record by record;
- `records`: from raw records to Task Implementations: settings of a source, columns, times, money, outcomes, and the
  protection of personal data;
- `ingestion`: which files changed, and their reading in parallel; `ingestion.onboarding` proposes settings;
- `discovery`: edges and statistics of one log, read without making implementations of it.
"""
