"""Declares the tables of ranked workflows, the reports on them, people's decisions, and the record of runs."""

from opus_pipelines.core.tables.declaration import RESULT, dataset, result_dataset, struct

struct(
    "left_out_task",
    """
    task_id  id   the task
    usd      usd  what a nearest case paid for it on average, repetitions included
""",
)

struct(
    "edit",
    """
    kind        string  way, review, parallel, wait, drop, merge, split, joint: several together; swap: only sets it
                        apart
    what        string  the change in words
    earned_usd  usd     what it earned, of the known costs; NULL where no gain is stated
    earned_success  float  the chance of success that it gained, where no gain is stated; else NULL
""",
)

OPTIMIZED = result_dataset(
    "workflows/optimized",
    "one row, one ranked workflow",
    "intake_id intention_id rank",
    """
    workflow_id           id            contains the Intention
    title                 string        what it does, in words
    rank                  int64         1..n, feasible first, then those without steps that nothing asks for, then by
                                        ranked_by
    ranked_by             list<string>  criteria of the ranking, first to last: Reward, Penalty, success, conformity,
                                        lead time; before them what overrides them where ranks differ in it: decision,
                                        constraints, steps that nothing asks for
    ahead_by              string        the criterion that puts it ahead of the next rank; of the last rank NULL
    backend               string        LWM backend behind it
    sequence_ids          list<string>  sequences behind it
    reward_usd            usd           EVAL (7), less the known costs; NULL where no gain is stated
    reward_usd_p05        usd           5th percentile of its posterior; NULL likewise
    reward_usd_p95        usd           95th percentile
    gain_usd              usd           worth of a right output; NULL where nobody states it
    success_probability   prob          success to expect: success_of_steps; start_success where that is lower by more
                                        than its interval, or nothing else is known
    success_basis         string        what it rests on: steps, similar cases, or cases of the process; NULL: nothing
    success_of_steps      prob          EVAL (4); NULL where no outcome of any of its steps was ever observed: its p are
                                        priors
    start_success         prob          share of the cases like the intake at its start that succeeded, by weight, of
                                        those with a known outcome; NULL where there are none, or several processes are
                                        combined
    start_success_low     prob          lower end of its 95 % interval
    start_success_high    prob          upper end
    start_cases           float         effective number of these cases
    similarity_basis      string        what of the intake was compared with cases: text, attributes, named steps, or
                                        all cases: nothing; NULL where no cases were compared
    success_inference     string        how success was inferred: exact; product, where the settings ask for it;
                                        simulated (65,536 seeded runs, standard error at most 0.002), where exact is too
                                        wide
    success_probability_product  prob   EVAL (4) in the paper's product form, which takes predecessors for independent;
                                        NULL where success_of_steps is
    reward_product_usd    usd           EVAL (7) in the product form, less the known costs; NULL where no gain is stated
    success_unknown_steps  int64        steps of which no outcome was observed: their p is a prior
    beats_next            prob          P(it beats the next rank)
    verdict               string        of rank 1: clear, undecided, rule at risk, or not answered; of other ranks NULL
    verdict_reason        string        why the verdict is not clear; NULL where it is
    unread                list<string>  documents that were not read or understood, each with the reason in a word
    best_share            prob          P(it is the best of the Intention's ranked workflows)
    completeness          string        what tells which work may be left out: outcomes of similar cases, or support
                                        among them
    conformity            prob          expected F1 of its steps against similar cases; NULL where it is none of
                                        ranked_by
    order_conformity      prob          expected F1 of its consecutive pairs of steps, likewise
    has_optional          bool          some step of it is asked for by nothing: it ranks below those without such steps
    similar_cases         float         effective number of similar cases behind it
    share_similar_cases   prob          share of its steps that at least one similar case did; NULL without such cases
    share_procedure       prob          share of its steps that the intake's own procedure asks for
    share_model           prob          share of its steps that the trained work model expects, in at least half of its
                                        sequences; NULL where no trained model serves. A step may count for several
    expected_events       list<string>  titles of the events and outcomes that similar cases met between the steps, in
                                        order
    cost_usd              usd           EVAL (5), of the known costs; NULL where no step's cost is known
    cost_assumed_share    prob          share of cost_usd that rests on estimates and stated defaults; NULL where no
                                        cost is known
    cost_unknown_steps    int64         steps of unknown cost: they are in no total
    cost_compute_usd      usd           part
    cost_model_usd        usd           part
    cost_human_usd        usd           part
    cost_time_usd         usd           part: w_d times the duration
    cost_held_usd         usd           part: releasable resources held
    path_cost_usd         usd           LWM (12), the search's objective without kappa, of the known costs
    duration_ms           ms            touch time: EVAL (2), longest path of the known times, no waiting; NULL where
                                        none is known
    duration_assumed_share  prob        share of the steps' known times that rests on estimates and stated defaults
    duration_unknown_steps  int64       steps of unknown time: they are in no total
    lead_time_ms_p50      ms            median lead time, from the start of the first step to the end of the last one:
                                        waiting is in it
    lead_time_ms_p90      ms            its 90th percentile
    lead_time_basis       string        waiting and work, time between completions (work is in it), mixed, assumed; or
                                        why it is NULL
    deadline_hours        float         max_lead_time_hours in force; NULL where none is
    p_deadline            prob          P(the lead time keeps the deadline); NULL without a deadline, or where the lead
                                        time is
    step_deadlines        list<string>  deadlines of its steps, each with the probability to keep it, or why it was not
                                        applied
    peak_memory_gb        float         EVAL (3)
    peak_threads          float         EVAL (3)
    penalty               float         EVAL (10)
    cip                   float         EVAL (8)
    sip                   float         EVAL (9)
    feasible              bool          EVAL (12)
    violations            list<string>  which constraint, by how much
    risks                 list<string>  the violations, where they are deadlines alone that it will probably miss
    tasks                 int64         tasks in it
    reviews               int64         reviews in it
    new_tasks             int64         tasks that the catalogue lacks
    lacks                 list<string>  what the intake's own procedure lists that the workflow lacks; where a case of
                                        history is like the intake, only what no rule was read of, and NULL where it
                                        has no procedure of its own, or one of more than 20 sentences
    conditional           list<string>  steps that the intake's own procedure asks for under a condition that the intake
                                        does not state, each with the condition; NULL where a case is like the intake
    observed_share        prob          share of its figures whose basis is observed
    differs_by            int64         steps that it differs in from the nearest better rank: others, or done by
                                        others; NULL of rank 1
    fewer                 string        why fewer workflows are ranked than generation.k; NULL where that many are
    edits                 list<edit>    what turned the proposed chain into it; their earnings add up to the Reward
                                        gained
    choices               list<edit>    what the Reward would lose without each review, and with a task done in a
                                        cheaper way
    binding               list<string>  constraints that keep it, or the Intention's best, from earning more, and what
                                        they cost
    gap_usd               usd           how much more another path may earn, 0 where the search was exact, NULL where it
                                        cannot tell
    gap_success           float         the same as a chance of success, where no gain is stated; else NULL
    exact                 bool          no other ways and reviews on its tasks in its shape earn more
    in_history            bool          this very sequence was once carried out
    baseline_cost_usd     usd           what the nearest cases paid for its compared steps, each carried out once; NULL
                                        where no case did all of this
    saving_usd            usd           baseline_cost_usd less the cost of its compared steps: the same steps, cheaper
                                        ways; the sum of its steps' savings
    repetition_usd        usd           what a nearest case paid on average for carrying out its steps again; the sum of
                                        its steps' repetition_usd
    left_out_usd          usd           what a nearest case paid on average for the tasks of left_out, less what is paid
                                        here for steps that not every nearest case did (its steps' left_out_usd)
    left_out              list<left_out_task>  tasks of nearest cases that it does not have
    cheaper_usd           usd           saving_usd + repetition_usd + left_out_usd: the mean cost of a nearest case less
                                        the cost of this workflow, as far as both are known
    compared_steps        int64         steps whose cost now and in the nearest cases is known
    case_cost_usd         usd           median cost of a whole nearest case, steps that the workflow leaves out among
                                        it; in no saving
    baseline_duration_ms  ms            median touch time of a whole nearest case
    baseline_lead_time_ms  ms           median lead time of a nearest case, from first start to last end
    baseline_success      prob          share of the nearest cases of known outcome that succeeded
    weights               string        w_d, w_r, alpha, beta, lambda and prices of EVAL (5)-(10) in force, as JSON
    snapshot              id            WKG it was made from
    model_version         string        model that made it
    decision              string        accepted or edited: a person chose it, so it is rank 1 whatever its figures;
                                        NULL: nobody did
    decision_number       int64         the decision behind `decision` or `decision_note`, a row of `decisions`
    decided_why           string        the reason that was given
    decided_by            string        who decided
    decision_note         string        what became of the chosen workflow: what had to be changed in it, or why it
                                        cannot be built any more
    better_workflow_id    id            of a chosen workflow: the one that ranks highest by its figures, where that is
                                        another
    better_by_usd         usd           how much more Reward the better one has; NULL where no gain is stated
""",
)

EXPECTED_FLOW = result_dataset(
    "workflows/expected_flow",
    "one row, one consecutive pair to be expected when a ranked workflow is carried out, events and returns too",
    "workflow_id src dst",
    """
    workflow_id  id      the workflow
    src          id      the task, event or outcome before
    dst          id      the one right after it
    src_task_key  string  raw key of it in similar cases, the most frequent one
    dst_task_key  string  likewise
    src_kind     string  step, event or outcome
    dst_kind     string  likewise
    src_place    int32   place in the expected order of first occurrence, from 0
    dst_place    int32   likewise; not after src_place: the case returns to it
    support      prob    share of similar cases with this pair, by weight; NULL where only the workflow itself puts them
                         so
""",
)

WORKFLOW_TASKS = result_dataset(
    "workflows/tasks",
    "one row, one node of a ranked workflow",
    "workflow_id position",
    """
    workflow_id          id                 the workflow
    node                 id                 node inside it
    position             int32              in one topological order
    kind                 string             input, task, output or review
    task_id              id                 its task
    task_keys            list<string>       raw keys in the client's nearest cases, most frequent first; of its other
                                            sources where none did it, else the title
    title                string             its name
    description          string             what it does
    instructions         list<instruction>  kind (model inference, code, human) and text
    inputs               list<string>       data it takes
    outputs              list<string>       data it leaves
    actor_kind           string             who does it
    model                string             which AI model
    actor_group          string             group or role of the people, where history has it
    p                    prob               P(it succeeds, given that all before it did)
    p_basis              string             observed, estimated or prior
    q                    prob               P(it succeeds, given that one before it did not)
    q_basis              string             observed, estimated or prior
    success_probability  prob               P(S_v), EVAL A2; NULL where that of the workflow is
    cost_usd             usd                expected cost; NULL where it is unknown
    cost_compute_usd     usd                part; NULL where history does not tell, what is then left over counts to the
                                            actor's kind
    cost_model_usd       usd                part
    cost_human_usd       usd                part
    cost_basis           string             observed, rate, declared (a price of the contract's catalogue), estimated or
                                            prior; NULL where the cost is unknown
    duration_ms          ms                 expected working time (touch time); NULL where it is unknown
    duration_basis       string             observed, estimated or prior; NULL where the time is unknown
    wait_ms_p50          ms                 median waiting time before it; NULL where unknown, or where it is the first
                                            step
    wait_ms_p90          ms                 90th percentile
    wait_basis           string             what the waiting time was measured on: edge_way, edge, way, task or resource
                                            (wkg/waits)
    wait_n               int64              waiting times counted
    memory_gb            float              held while it runs
    threads              float              held while it runs
    gain_usd             usd                what it earns if it is right, of an output; NULL where nobody states it
    start_ms             ms                 EVAL (16), no waiting; NULL behind a step of unknown time
    finish_ms            ms                 EVAL (17), likewise
    cohesion             float              score, 0 best
    coupling             float              score, 0 best
    observability        float              score, 0 best
    hygiene              float              score, 0 best
    origin               string             history, lwm, connector, algorithm1, algorithm2, review, new, declared
                                            (only the contract's catalogue has it), or decision (a person put it in)
    asked_by             list<string>       what asks for it: outcomes or support of similar cases, procedure,
                                            constraint, decision; empty where the search took it for what it earns
    similar_share        prob               share of the similar cases, by weight, that did it; NULL without such cases
    model_share          prob               share of the trained work model's sequences that have it; NULL where no
                                            trained model serves
    evidence             int64              implementations behind it
    baseline_cost_usd    usd                what the nearest cases paid for the task once, on average; NULL where none
                                            did it
    saving_usd           usd                baseline_cost_usd less cost_usd; NULL where one of them is unknown
    repetition_usd       usd                what a nearest case paid on average for carrying it out again
    left_out_usd         usd                0 or less: baseline_cost_usd times the share of the nearest cases that did
                                            not do the task, or cost_usd where none did
    nearest_task_id      id                 of a new step the known task whose figures it has, as estimates; NULL of any
                                            other
""",
)

WORKFLOW_EDGES = result_dataset(
    "workflows/edges",
    "one row, one edge of a ranked workflow",
    "workflow_id src dst",
    """
    workflow_id  id      the workflow
    src          id      node
    dst          id      node after it
    data_type    string  what flows, where known
    gamma        prob    of the WKG's edge
    origin       string  history, lwm, decision, algorithm1, algorithm2, review, or dependency: a wait that no sequence
                         has as a pair
""",
)

WORKFLOW_CHANGES = result_dataset(
    "workflows/changes",
    "one row, one Intention whose rank-1 workflow differs from the result before",
    "intake_id intention_id before",
    """
    before                id            the result that was current before this one
    snapshot_before       id            the snapshot that it was made from
    snapshot_after        id            the snapshot that this one was made from
    folder                string        the intake's folder
    change                string        added, removed, steps, ways (the same steps, done by others), order, or figures
    workflow_id_before    id            rank 1 in the result before
    workflow_id_after     id            rank 1 in this one
    title_before          string        its name before
    title_after           string        its name now
    steps_before          list<string>  its tasks and reviews in order, before
    steps_after           list<string>  now
    steps_added           list<string>  steps that only the new one has
    steps_removed         list<string>  steps that only the old one has
    reward_usd_before     usd           Reward before; NULL where no gain was stated
    reward_usd_after      usd           now
    success_before        prob          success probability before
    success_after         prob          now
    cost_usd_before       usd           cost before
    cost_usd_after        usd           now
    duration_ms_before    ms            duration before
    duration_ms_after     ms            now
    verdict_before        string        verdict before
    verdict_after         string        now
    feasible_before       bool          did it keep every constraint
    feasible_after        bool          does it
    because               list<string>  snapshot, settings, code, model, intake, decision: what differs; empty: the
                                        contract's files do
    sources               list<string>  the sources of the cases behind the change
    cases                 int64         near cases that came, went or changed, and changed cases of history with a step
                                        that came or went
    implementation_ids    list<string>  the first 20 of them by id: rows of history/implementations
""",
)

COST_REPORT = result_dataset(
    "reports/cost",
    "one row, one task over a contract's rank-1 workflows",
    "task_id",
    """
    task_id            id      the task
    title              string  its name
    workflows          int64   rank-1 workflows with it
    cost_usd           usd     summed over them, of the known costs; NULL where none is known
    cost_assumed_share    prob   share of cost_usd that rests on estimates and stated defaults
    cost_unknown_steps    int64  steps of unknown cost among them: they are in no sum
    cost_compute_usd   usd     part
    cost_model_usd     usd     part
    cost_human_usd     usd     part
    duration_ms        ms      summed over them, of the known times; NULL where none is known
    duration_assumed_share  prob   share of duration_ms that rests on estimates and stated defaults
    duration_unknown_steps  int64  steps of unknown time among them
    share              prob    of the contract's cost
    baseline_cost_usd  usd     what the nearest cases paid for this task once, mean, summed over the compared steps
    saving_usd         usd     the steps' savings, summed
    compared_steps     int64   steps whose cost now and in the nearest cases is known
    observed_share     prob    share of its figures whose basis is observed
""",
    head=RESULT,
)

REWARD_REPORT = result_dataset(
    "reports/reward",
    "one row, one Intention",
    "intake_id intention_id",
    """
    reward_usd           usd     of its rank-1 workflow; NULL where no gain is stated, as all dollars that follow from
                                 it
    penalty              float   likewise
    rank2_reward_usd     usd     of the runner-up
    distance             usd     EVAL (14)
    cost_assumed_share   prob    share of its cost that rests on estimates and stated defaults
    cost_unknown_steps   int64   its steps of unknown cost
    duration_unknown_steps  int64  its steps of unknown time
    baseline_reward_usd  usd     of how history carried it out: its share of successes at the median cost of a whole
                                 case
    uplift_usd           usd     reward less baseline
    feasible             bool    of its rank-1 workflow
    wkg_coverage         prob    share of its tasks found in the WKG
    verdict              string  of its rank-1 workflow
""",
)


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
