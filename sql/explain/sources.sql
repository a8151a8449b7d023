-- Every source: its files by what became of them, its records and cases as they were read last, and which version is in use.
-- records = used + no work + duplicate + corrected + put aside with a rejected record of their case + rejected
WITH aside AS (SELECT source, count(*) AS records FROM history_rejects WHERE reason_code = 'case_quarantined' GROUP BY source)
SELECT
    source, count(*) FILTER (status IN ('loaded', 'unchanged', 'held')) AS files, count(*) FILTER (status = 'rejected') AS rejected_files,
    count(*) FILTER (status = 'gone') AS gone_files,
    sum(history_sources.records) FILTER (status <> 'gone') AS records, sum(records_used) FILTER (status <> 'gone') AS records_used,
    (sum(records_not_work - records_duplicate - records_corrected) FILTER (status <> 'gone'))::BIGINT AS records_no_work,
    sum(records_duplicate) FILTER (status <> 'gone') AS records_duplicate, sum(records_corrected) FILTER (status <> 'gone') AS records_corrected,
    coalesce(any_value(aside.records), 0) AS records_put_aside,
    (sum(records_rejected) FILTER (status <> 'gone') - coalesce(any_value(aside.records), 0))::BIGINT AS records_rejected,
    sum(implementations) FILTER (status <> 'gone') AS implementations, sum(cases_quarantined) FILTER (status <> 'gone') AS cases_quarantined,
    CASE
        WHEN bool_and(status = 'gone') THEN 'gone'
        WHEN bool_or(status = 'held') AND max(version) IS NOT NULL THEN 'the last good version'
        WHEN max(version) IS NULL THEN 'none'
        WHEN bool_and(status IN ('rejected', 'gone')) THEN 'the last good version'
        ELSE 'as read'
    END AS in_use,
    max(version) AS version, max(last_read) AS last_read
FROM history_sources LEFT JOIN aside USING (source)
GROUP BY source
ORDER BY source
