"""Declares the decisions of people on ranked workflows.

They are kept outside of results, so rebuilds and rollbacks keep them.
"""

from opus_pipelines.core.tables.declaration import dataset, struct

struct(
    "decided_step",
    """
    task_id      string       its task; of a review the task that it stands behind
    title        string       the task's name when it was decided
    is_review    bool         a review of the task, not the task itself
    actor_kind   string       who does it
    model        string       which AI model
    actor_group  string       group or role of the people
    after        list<int32>  places in this list of the steps that it directly waits for; empty: it waits for the input
                              only
""",
)

DECISIONS = dataset(
    "decisions",
    "one row, one decision of a person on a ranked workflow; rows are added and never changed",
    ("client contract number"),
    """
    client        string              the client, as written
    contract      string              the contract, as written
    number        int64               1, 2, ... within the contract; where two decide the same, the larger one holds
    decision_id   id                  hash of client, contract and number; generation/neighbours names it where it
                                      counts as a case
    decision      string              accept, reject or edit
    why           string              the reason that was given
    decided_by    string              who decided, as stated
    decided_at    ts                  when
    intake_id     id                  the intake
    intake        string              its folder
    intention_id  id                  the goal of the intake
    workflow_id   id                  the workflow that was decided on; of an edit the one that was changed
    result        id                  the result that it stood in
    rank          int64               its rank there
    steps         list<decided_step>  the accepted or rejected workflow, or the edited one as the person wrote it
    vector        list<float>         the encoded Intention, to find similar intakes
    encoder       string              the model that encoded it
""",
    partitions="client_key contract_key",
)
