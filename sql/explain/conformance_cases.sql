-- The finished cases that are compared with a model: their tasks in order, and what they cost, took and came to.
SELECT implementation_id, tasks, success, cost_usd, lead_time_ms
FROM process_cases
WHERE coalesce(p_ended, 1) >= 0.5 AND ($source IS NULL OR source = $source) AND ($client IS NULL OR client = $client)
    AND ($contract IS NULL OR contract = $contract) AND len(tasks) > 0
ORDER BY implementation_id;
