-- What is said of a task, counted: descriptions, instructions, inputs and outputs, a row per source, client, way, field and value.
-- The rarest beyond :values_kept values of a source's client, way and field are left out: free text must not grow with history.
-- `observations`: a row per step and text of it.
WITH counted AS (
  SELECT /*+ BROADCAST(a) */ s.source, s.client, a.task_id, s.actor_kind, s.model, s.actor_group, s.field, s.value, CAST(sum(weight) AS BIGINT) AS count
  FROM observations s
  JOIN aliases a ON s.source = a.source AND s.industry IS NOT DISTINCT FROM a.industry AND s.task_key = a.task_key
  GROUP BY s.source, s.client, a.task_id, s.actor_kind, s.model, s.actor_group, s.field, s.value
), ranked AS (
  SELECT *,
    row_number() OVER (PARTITION BY source, client, task_id, actor_kind, model, actor_group, field ORDER BY count DESC, value) AS place FROM counted
)
SELECT source, client, task_id, actor_kind, model, actor_group, field, value, count FROM ranked WHERE place <= :values_kept
