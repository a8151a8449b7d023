-- Every file of history ever seen: what came of it, and whether its records add up.
-- opus query history_sources
SELECT
    source, path, status, format, encoding, bytes, records, records_used, records_not_work, records_rejected,
    records = records_used + records_not_work + records_rejected AS adds_up,
    records_duplicate, records_corrected, implementations, cases_quarantined, task_implementations, version, reason, mixed_encodings, last_read
FROM history_sources
ORDER BY source, path;
