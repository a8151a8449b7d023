-- Every source with its files counted by what became of them.
SELECT
    source, count(*) FILTER (status IN ('loaded', 'unchanged')) AS files, count(*) FILTER (status = 'rejected') AS rejected_files,
    count(*) FILTER (status = 'gone') AS gone_files,
    sum(records) FILTER (status <> 'gone') AS records, sum(records_rejected) FILTER (status <> 'gone') AS records_rejected,
    sum(implementations) FILTER (status <> 'gone') AS implementations, max(last_read) AS last_read
FROM history_sources
GROUP BY source
ORDER BY source
