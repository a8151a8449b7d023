-- Every source: its files by what became of them, its records and cases as they were read last, and which version is in use.
SELECT
    source, count(*) FILTER (status IN ('loaded', 'unchanged', 'held')) AS files, count(*) FILTER (status = 'rejected') AS rejected_files,
    count(*) FILTER (status = 'gone') AS gone_files,
    sum(records) FILTER (status <> 'gone') AS records, sum(records_used) FILTER (status <> 'gone') AS records_used,
    sum(records_rejected) FILTER (status <> 'gone') AS records_rejected,
    sum(records_duplicate) FILTER (status <> 'gone') AS records_duplicate, sum(records_corrected) FILTER (status <> 'gone') AS records_corrected,
    sum(implementations) FILTER (status <> 'gone') AS implementations, sum(cases_quarantined) FILTER (status <> 'gone') AS cases_quarantined,
    CASE
        WHEN bool_and(status = 'gone') THEN 'gone'
        WHEN bool_or(status = 'held') AND max(version) IS NOT NULL THEN 'the last good version'
        WHEN max(version) IS NULL THEN 'none'
        WHEN bool_and(status IN ('rejected', 'gone')) THEN 'the last good version'
        ELSE 'as read'
    END AS in_use,
    max(version) AS version, max(last_read) AS last_read
FROM history_sources
GROUP BY source
ORDER BY source
