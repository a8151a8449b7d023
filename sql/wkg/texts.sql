-- What is said of a task, counted: descriptions, instructions, inputs and outputs, a row per source, way, field and value.
-- The rarest beyond :values_kept values of a source's way and field are left out: free text must not grow with history.
WITH steps AS (
  SELECT source, industry, weight, inline(tasks) FROM implementations
), said AS (
  SELECT source, industry, task_key, actor_kind, model, actor_group, weight, 'description' AS field, description AS value FROM steps
  UNION ALL SELECT source, industry, task_key, actor_kind, model, actor_group, weight, 'instruction', explode(instructions) FROM steps
  UNION ALL SELECT source, industry, task_key, actor_kind, model, actor_group, weight, 'input', explode(inputs) FROM steps
  UNION ALL SELECT source, industry, task_key, actor_kind, model, actor_group, weight, 'output', explode(outputs) FROM steps
), counted AS (
  SELECT /*+ BROADCAST(a) */ s.source, a.task_id, s.actor_kind, s.model, s.actor_group, s.field, s.value, sum(weight) AS count
  FROM said s JOIN aliases a ON s.source = a.source AND s.industry <=> a.industry AND s.task_key = a.task_key
  WHERE value IS NOT NULL
  GROUP BY s.source, a.task_id, s.actor_kind, s.model, s.actor_group, s.field, s.value
), ranked AS (
  SELECT *,
    row_number() OVER (PARTITION BY source, task_id, actor_kind, model, actor_group, field ORDER BY count DESC, value) AS place FROM counted
)
SELECT source, task_id, actor_kind, model, actor_group, field, value, count FROM ranked WHERE place <= :values_kept
