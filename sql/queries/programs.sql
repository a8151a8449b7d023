-- Searches for better workflow programs: reward before and after on held-out tasks, with the mean and a 95 % interval over seeds.
-- opus query programs
-- The interval is that of the mean by the normal approximation; best_share is the share of the best possible reward.
SELECT
    search, interpreter, method, reward,
    count(*) AS seeds, max(calls) AS calls, avg(begin_report) AS before_mean, avg(best_report) AS after_mean,
    avg(best_report) - 1.96 * coalesce(stddev_samp(best_report), 0) / sqrt(count(*)) AS after_low,
    avg(best_report) + 1.96 * coalesce(stddev_samp(best_report), 0) / sqrt(count(*)) AS after_high,
    avg(best_report / optimum_report) AS best_share,
    avg(valid_share) AS valid_share
FROM programs_searches
GROUP BY ALL
ORDER BY search, interpreter, after_mean DESC, method;
