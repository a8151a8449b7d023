-- The rebuilds among the last 31 that failed: why, where the evidence lies, and the command that repeats them.
SELECT started_at, reason, evidence, repeat
FROM (FROM ops_runs WHERE job = 'rebuild' ORDER BY started_at DESC, run LIMIT 31)
WHERE status <> 'success'
ORDER BY started_at DESC
