-- Steps of workflow programs by how often they were carried out, how often their tool failed, and which branches they took.
-- opus query program_steps
SELECT
    program, title, step, kind, count(*) AS visits, count(*) FILTER (s.status NOT IN ('answered', 'no_answer')) AS failures,
    count(*) FILTER (branch_by = 'first') AS undecided, list(DISTINCT branch ORDER BY branch) FILTER (branch IS NOT NULL) AS branches,
    sum(s.cost_usd) AS cost_usd
FROM programs_steps AS s JOIN programs_runs AS r USING (run)
GROUP BY ALL
ORDER BY program, visits DESC, step;
