-- The last 31 rebuilds: time, rate, memory, rejects, failed checks, drift and cost of each, and why one failed. The newest first.
-- opus query nights
SELECT
    started_at, status, round(duration_ms / 1000, 1) AS seconds, items AS cases, round(items_per_second, 1) AS cases_per_second,
    round(peak_memory_mb) AS peak_memory_mb, rejects, checks, checks_failed, drift_share, round(cpu_ms / 1000, 1) AS cpu_seconds, cost_usd,
    reason, evidence, repeat, run
FROM ops_runs
WHERE job = 'rebuild'
ORDER BY started_at DESC, run
LIMIT 31
