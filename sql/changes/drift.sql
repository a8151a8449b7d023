-- Every edge of either snapshot: its transitions and its share of those out of src before and after, 0 where it is not there, and the
-- transitions out of src in both snapshots, NULL where one of them has none.
WITH edges AS (
  SELECT src, dst, coalesce(old.transitions, 0) AS before, coalesce(new.transitions, 0) AS after,
    coalesce(old.probability, 0) AS share_before, coalesce(new.probability, 0) AS share_after
  FROM old_edges old FULL JOIN new_edges new USING (src, dst)
), leaving AS (
  SELECT src, sum(before) AS before, sum(after) AS after FROM edges GROUP BY src
)
SELECT edges.*, CASE WHEN leaving.before > 0 AND leaving.after > 0 THEN CAST(leaving.before + leaving.after AS BIGINT) END AS weight
FROM edges JOIN leaving USING (src)
ORDER BY src, dst
