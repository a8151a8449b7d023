-- What could not be used: files rejected whole, intakes refused or failed.
SELECT 'file' AS what, source || '/' || path AS which, reason FROM history_sources WHERE status = 'rejected'
UNION ALL
SELECT 'intake ' || status, client || ' / ' || contract || ' / ' || folder, reason FROM generation_intakes WHERE status <> 'generated'
ORDER BY what, which
