-- Running cases by what is expected of them: those that will probably break a limit or fail stand first.
-- opus query forecasts
-- A figure that history does not know is NULL.
SELECT
    source, case_id, last_activity, next_activity, p_next, do_next, do_next_reason,
    remaining_ms / 3600000 AS remaining_hours, remaining_ms_low / 3600000 AS low_hours, remaining_ms_high / 3600000 AS high_hours,
    remaining_cost_usd, p_success, p_late, p_limit, rest
FROM forecasts_cases
ORDER BY p_limit DESC NULLS LAST, p_success NULLS LAST, remaining_ms DESC, source, case_id;
