-- The last rebuild beside the median, the smallest and the largest of up to thirty before it, figure by figure.
WITH
    ranked AS (
        SELECT *, row_number() OVER (ORDER BY started_at DESC, run) AS place
        FROM ops_runs WHERE job = 'rebuild'
    ),
    figures AS (
        SELECT place, unnest([
            {'position': 1, 'figure': 'duration', 'unit': 's', 'value': duration_ms / 1000},
            {'position': 2, 'figure': 'cases', 'unit': '', 'value': items::DOUBLE},
            {'position': 3, 'figure': 'cases a second', 'unit': '', 'value': items_per_second},
            {'position': 4, 'figure': 'peak memory', 'unit': 'MB', 'value': peak_memory_mb},
            {'position': 5, 'figure': 'records rejected', 'unit': '', 'value': rejects::DOUBLE},
            {'position': 6, 'figure': 'checks failed', 'unit': '', 'value': checks_failed::DOUBLE},
            {'position': 7, 'figure': 'share of tasks that came or went', 'unit': '', 'value': drift_share},
            {'position': 8, 'figure': 'processor time', 'unit': 's', 'value': cpu_ms / 1000},
            {'position': 9, 'figure': 'cost', 'unit': 'USD', 'value': cost_usd}
        ], max_depth := 2)
        FROM ranked WHERE place <= 31
        UNION ALL
        SELECT place, 10 + position, 'step ' || stage.stage, 's', stage.duration_ms / 1000
        FROM (
            SELECT place, unnest(stages) AS stage, generate_subscripts(stages, 1) AS position FROM ranked WHERE place <= 31
        )
    )
SELECT
    figure, unit,
    round(any_value(value) FILTER (place = 1), 3) AS last,
    round(median(value) FILTER (place > 1), 3) AS median_before,
    round(min(value) FILTER (place > 1), 3) AS least_before,
    round(max(value) FILTER (place > 1), 3) AS most_before,
    count(value) FILTER (place > 1) AS nights
FROM figures
GROUP BY figure, unit
HAVING count(value) > 0
ORDER BY min(position) FILTER (place = 1) NULLS LAST, min(position), figure
