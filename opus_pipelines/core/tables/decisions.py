"""Declares what is kept outside of snapshots and results, so that rebuilds and rollbacks keep it.

These are the decisions of people on ranked workflows, and the record of the runs of the jobs.
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

struct(
    "run_stage",
    """
    stage        string  step of the job
    duration_ms  ms      from its start to its end
""",
)

OPS_RUNS = dataset(
    "ops/runs",
    "one row, one run of the jobs rebuild, generate, train or flows that has ended",
    ("started_at run"),
    """
    run               string           id in Dagster's record
    job               string           rebuild, generate, train or flows
    contract_key      string           client and contract of a generation, as the partition names them
    status            string           success or failure
    started_at        ts               start
    ended_at          ts               end
    duration_ms       ms               from start to end
    stages            list<run_stage>  steps in their order
    snapshot          id               snapshot that was current at the end
    items             int64            cases of history that a rebuild read, or intakes that a generation worked on;
                                       NULL where the run reports none
    items_per_second  float            items / seconds of the steps
    rejects           int64            records of history that were rejected, or intakes that failed
    checks            int64            checks that were evaluated
    checks_failed     int64            of these the ones that failed
    failed_checks     list<string>     dataset and name of each failed check, with its finding
    drift_share       float            share of tasks that came or went against the snapshot before; NULL without one
    cpu_ms            ms               processor time of all processes of the run
    peak_memory_mb    float            sum of the most memory that each living process of the run had held at its end
    cost_usd          usd              processor time x ops.usd_per_cpu_hour; NULL where no price is set
    reason            string           why it failed, on one line
    evidence          string           where the evidence of a failure lies
    repeat            string           the command that repeats the run
""",
    partitions="run_key",
)
