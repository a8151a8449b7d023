"""Declares the scores of generated workflows on task sets."""

from opus_pipelines.core.tables.declaration import dataset

EVALUATION_ITEMS = dataset(
    "evaluations/items",
    "one row, one item of a task set answered by one system; opus evaluate writes them",
    ("evaluation system item"),
    """
    evaluation             id            hash of the task set, its items in use, the snapshot, the model, the algorithm
                                         versions, the settings and the ablations
    task_set               string        name of the file
    system                 string        whole system, the name of an ablation, a control or a bound
    role                   string        system, ablation, control or bound
    item                   string        id of the item in the task set
    item_group             string        items of one group are alike; intervals are drawn over groups
    status                 string        generated, refused or failed; the last two count as an empty plan
    reason                 string        why there is no plan
    steps                  list<string>  the plan, by the names of history
    gold_steps             list<string>  the reference plan
    precision              float         share of the plan's steps that the reference has
    recall                 float         share of the reference's steps that the plan has
    node_f1                float         F1 of the sets of steps
    link_f1                float         F1 of the sets of links
    order                  float         Kendall's tau of the common steps; NULL with fewer than two
    exact                  float         1 where steps and order are those of the reference
    first                  float         1 where the first step is that of the reference
    graph_edit_similarity  float         1 - graph edit distance / size of both graphs
    graph_edit_is_exact    bool          no smaller edit distance exists
    coverage               float         share of the plan's steps that match a reference step by text (2412.00573)
    kendall                float         Kendall's tau of the matched steps times coverage
    dtw                    float         dynamic time warping similarity of the matched steps times coverage
    bleu                   float         mean BLEU-4 of the steps with their matches
    cosine                 float         mean cosine of the steps with their matches
    outside_catalogue      float         share of the steps that the item's catalogue does not have; NULL without one
    f1_chain               float         WorFBench, by the paper's definition; NULL where a workflow has a cycle or more
                                         than 24 tasks
    f1_graph               float         the same for the largest connected common subgraph
    f1_chain_official      float         the figure of WorFBench's program, with its deviations
    f1_graph_official      float         the figure of WorFBench's program, with its deviations
    snapshot               id            snapshot of the Work Knowledge Graph
    model_version          string        backend and its version
""",
    partitions="evaluation_key",
)
