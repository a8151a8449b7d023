-- One round of label propagation: id, the label that it has after the round, and whether it wanted another before it.
-- {heard} (id, neighbour, weight) with every vertex as a neighbour of its own of weight 0, {labels} (id, label);
-- :factor draws who is awake (opus_pipelines.wkg.graph_metrics.draw).
WITH votes AS (
    SELECT /*+ REPARTITION(id) */ heard.id, labels.label, heard.weight, heard.neighbour = heard.id AS own
    FROM {heard} AS heard JOIN {labels} AS labels ON labels.id = heard.neighbour
),
counted AS (
    SELECT id, label, sum(weight) AS weight, max(own) AS own FROM votes GROUP BY id, label
),
wanting AS (
    SELECT
        id, max(CASE WHEN own THEN label END) AS label,
        -- of equal weights its own label, else the smallest
        max(struct(weight, own, -label AS minus_label)).minus_label AS minus_wanted
    FROM counted GROUP BY id
)
SELECT
    id,
    CASE WHEN (id + 1) * :factor % 2147483647 % 2 = 1 THEN -minus_wanted ELSE label END AS label,
    -minus_wanted <> label AS moving
FROM wanting
