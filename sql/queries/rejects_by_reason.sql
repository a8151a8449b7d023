-- Records of history that could not be used, counted by source, file and reason, with one example each.
-- opus query rejects_by_reason
SELECT
    source, path, reason_code, count(*) AS records,
    min_by(reason, position) AS first_reason,
    min(position) AS first_position,
    any_value(position_unit) AS position_unit
FROM history_rejects
GROUP BY source, path, reason_code
ORDER BY source, path, records DESC, reason_code;
