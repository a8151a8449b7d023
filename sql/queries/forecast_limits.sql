-- Limits of running cases, those first that are most probably broken; with the activity to do now.
-- opus query forecast_limits
-- limit_value, so_far and expected are in the unit of the line; a probability that history does not know is NULL.
SELECT
    l.source, l.case_id, c.client, l.kind, l.activity, l.after, l.unit, l.limit_value, l.so_far, l.expected, l.p_broken, l.stated_by,
    c.last_activity, c.do_next, c.do_next_reason
FROM forecasts_limits AS l
JOIN forecasts_cases AS c USING (forecast, case_id)
ORDER BY l.p_broken DESC NULLS LAST, l.source, l.case_id, l.place;
