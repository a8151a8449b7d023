-- Mean scores of every evaluation of flows from utterances, one row for each system and tag; the tag NULL is all utterances.
-- opus query utterance_scores
-- exact is the semantic reading, exact_alpha up to the names of variables; a refused utterance counts 0.
WITH tagged AS (
    SELECT *, unnest(list_append(list_filter(tags, lambda tag: NOT regexp_full_match(tag, '[0-9]+')), NULL)) AS tag
    FROM evaluations_utterances
)
SELECT
    evaluation, task_set, protocol, system, tag, count(*) AS items, avg(exact_semantic) AS exact, avg(exact_alpha) AS exact_alpha,
    avg(exact_string) AS exact_string, avg(parsed) AS parsed, avg(syntax_f1) AS syntax_f1, avg(activity_f1) AS activity_f1,
    avg(hallucination) AS hallucination, avg(edit_faithfulness) AS edit_faithfulness, avg(recall_10) AS recall_10,
    avg(recall_50) AS recall_50, avg(duration_ms) AS duration_ms, sum(cost_usd) AS cost_usd
FROM tagged
GROUP BY evaluation, task_set, protocol, system, tag
ORDER BY evaluation, system DESC, tag NULLS FIRST;
