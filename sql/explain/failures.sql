-- What could not be used: sources that keep an earlier version, files rejected whole, records rejected, cases put aside because of them,
-- files of mixed encodings, intakes refused or failed.
SELECT 'source held back' AS what, source AS which, any_value(reason) AS reason FROM history_sources WHERE status = 'held' GROUP BY source
UNION ALL
SELECT 'file', source || '/' || path, reason FROM history_sources WHERE status = 'rejected'
UNION ALL
SELECT
    'records', source,
    format('{:,} of {:,} records rejected, {:,} cases put aside whole; see `opus query rejects_by_reason`',
        sum(records_rejected)::BIGINT, sum(records)::BIGINT, coalesce(sum(cases_quarantined), 0)::BIGINT)
FROM history_sources WHERE status <> 'gone' GROUP BY source HAVING sum(records_rejected) > 0
UNION ALL
SELECT 'encoding', source || '/' || path, mixed_encodings FROM history_sources WHERE status <> 'gone' AND mixed_encodings IS NOT NULL
UNION ALL
SELECT 'intake ' || status, client || ' / ' || contract || ' / ' || folder, reason FROM generation_intakes WHERE status <> 'generated'
UNION ALL
SELECT DISTINCT 'catalogue', client || ' / ' || contract || ' / ' || element.name, element.left_out
FROM (SELECT client, contract, unnest(elements) AS element FROM generation_intakes)
WHERE element.modality = 'catalogue' AND element.left_out IS NOT NULL
ORDER BY what, which
