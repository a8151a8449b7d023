-- Names of Spark that DuckDB has under another name, and what several queries of this folder say.
CREATE MACRO get(list, place) AS list[place + 1];
-- The places of the steps directly before the i-th one, i from 1: those stated, each once and inside the case, else the one in front of it.
CREATE MACRO places(tasks, t, i) AS CASE
  WHEN t.predecessors IS NOT NULL THEN list_filter(list_distinct(t.predecessors), lambda j: j >= 0 AND j < len(tasks))
  WHEN i > 1 THEN [CAST(i - 2 AS INTEGER)] ELSE [] END;
-- Whether a step directly before is known to have failed. One that is not known to have failed counts as right.
CREATE MACRO after_failure(tasks, t, i) AS CASE
  WHEN t.predecessors IS NOT NULL THEN len(list_filter(places(tasks, t, i), lambda j: NOT get(tasks, j).success)) > 0
  ELSE i > 1 AND coalesce(NOT get(tasks, i - 2).success, false) END;
