-- What differs between segments: cases with one value of an attribute against the other cases that state it, by measure, the clearest first.
-- opus query process_segments --set attribute=NAME --set client=CLIENT --set source=SOURCE
-- Without `attribute` all attributes of 2 to 20 values are compared, in segments of at least 20 cases. The interval of the difference is the
-- one of 95 % (Welch); `is_clear` holds the number of comparisons against it (Bonferroni). A difference is no proof of a cause.
WITH cases AS (
    SELECT * FROM process_cases
    WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
        AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
), stated AS (
    SELECT source, implementation_id, e.key AS attribute, e.value AS value
    FROM (SELECT source, implementation_id, unnest(map_entries(attributes)) AS e FROM cases)
    WHERE e.value IS NOT NULL AND coalesce(e.key = getvariable('attribute')::VARCHAR, getvariable('attribute') IS NULL)
), segments AS (
    SELECT source, attribute FROM (SELECT source, attribute, value, count(*) AS n FROM stated GROUP BY ALL)
    GROUP BY source, attribute HAVING count(*) BETWEEN 2 AND 20 AND count(*) FILTER (WHERE n >= 20) >= 1
), measures AS (
    SELECT source, attribute, value, unnest([
        {'measure': 'lead time (hours)', 'n': count(lead_time_ms), 'x': sum(lead_time_ms / 3600000), 'xx': sum((lead_time_ms / 3600000) ** 2)},
        {'measure': 'waiting time (hours)', 'n': count(wait_ms), 'x': sum(wait_ms / 3600000), 'xx': sum((wait_ms / 3600000) ** 2)},
        {'measure': 'working time (hours)', 'n': count(work_ms), 'x': sum(work_ms / 3600000), 'xx': sum((work_ms / 3600000) ** 2)},
        {'measure': 'cost (USD)', 'n': count(cost_usd), 'x': sum(cost_usd), 'xx': sum(cost_usd ** 2)},
        {'measure': 'steps', 'n': count(steps), 'x': sum(CAST(steps AS DOUBLE)), 'xx': sum(CAST(steps AS DOUBLE) ** 2)},
        {'measure': 'success', 'n': count(success), 'x': CAST(count(*) FILTER (WHERE success) AS DOUBLE), 'xx': CAST(count(*) FILTER (WHERE success) AS DOUBLE)}
    ], recursive := true)
    FROM stated JOIN cases USING (source, implementation_id) SEMI JOIN segments USING (source, attribute)
    GROUP BY source, attribute, value
), variants AS (
    SELECT source, attribute, value, tasks, count(*) AS cases
    FROM stated JOIN cases USING (source, implementation_id) SEMI JOIN segments USING (source, attribute)
    GROUP BY source, attribute, value, tasks
), sums AS (
    FROM measures
    UNION ALL
    SELECT source, attribute, value, 'does ' || title, sum(cases), sum(cases), sum(cases)
    FROM (SELECT source, attribute, value, cases, unnest(list_distinct(tasks)) AS task_id FROM variants)
    JOIN (SELECT task_id, title FROM wkg_tasks) USING (task_id)
    GROUP BY source, attribute, value, title
), sizes AS (
    SELECT source, attribute, value, count(*) AS cases FROM stated SEMI JOIN segments USING (source, attribute) GROUP BY ALL
), every AS (
    -- Whether a case does an activity is known of each case: who does it not has a 0.
    SELECT source, attribute, value, measure, if(starts_with(measure, 'does '), cases, coalesce(n, 0)) AS n, coalesce(x, 0) AS x, coalesce(xx, 0) AS xx
    FROM sizes JOIN (SELECT DISTINCT source, attribute, measure FROM sums) USING (source, attribute)
    LEFT JOIN sums USING (source, attribute, value, measure)
), compared AS (
    SELECT
        source, attribute, value, measure, n, x / n AS mean, (xx - x * x / n) / (n - 1) / n AS variance,
        sum(n) OVER others AS n_others, sum(x) OVER others / n_others AS mean_others,
        (sum(xx) OVER others - sum(x) OVER others * sum(x) OVER others / n_others) / (n_others - 1) / n_others AS variance_others
    FROM every
    WINDOW others AS (PARTITION BY source, attribute, measure ORDER BY value ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)
    QUALIFY n >= 20 AND n_others >= 20
), differing AS (
    SELECT *, mean - mean_others AS difference, sqrt(greatest(variance, 0) + greatest(variance_others, 0)) AS error FROM compared
)
SELECT
    source, attribute, value, measure, n AS cases, mean, mean_others, difference, difference - 1.96 * error AS difference_low,
    difference + 1.96 * error AS difference_high, abs(difference) > sqrt(2 * ln(20.0 * count(*) OVER ())) * error AND difference <> 0 AS is_clear
FROM differing
WHERE difference <> 0
ORDER BY source, is_clear DESC, abs(difference) / nullif(error, 0) DESC NULLS FIRST, attribute, value, measure
LIMIT 200;
