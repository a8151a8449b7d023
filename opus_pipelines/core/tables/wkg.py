"""Declares the tables of the Work Knowledge Graph, one folder for each snapshot."""

from opus_pipelines.core.tables.declaration import STRUCTS, dataset

STRUCTS["said"] = (
    ("client", "string"),
    ("description", "string"),
    ("instructions", "list<string>"),
    ("inputs", "list<string>"),
    ("outputs", "list<string>"),
)

TASKS = dataset(
    "wkg/tasks",
    "one row, one node",
    "task_id",
    """
    task_id           id            stable id, from the id ledger
    title             string        the most frequent name
    description       string        the most frequent description
    instructions      list<string>  the most frequent instructions
    inputs            list<string>  data it takes
    outputs           list<string>  data it leaves
    industries        list<string>  industries that carry it out
    clients           list<string>  clients it was carried out for
    said              list<said>    the texts again, of each client alone: a result for a client is made of its own
    sources           list<string>  sources that hold it
    activity_kind     string        step (work), event (happens by itself or outside the office) or outcome (tells how a
                                    case ended)
    activity_kind_reason  string    why it is of that kind: evidence, or that source.toml states it
    implementations   int64         Task Implementations counted, weighted
    first_seen        ts            earliest start
    last_seen         ts            latest start
    p                 prob          P(it succeeds, given that all its direct predecessors did)
    p_lower           prob          lower end of the 95 % interval
    p_upper           prob          upper end
    p_basis           string        observed, estimated or prior
    p_n               int64         count behind p
    p_reason          string        why p or its interval is NULL; NULL where neither is
    q                 prob          P(it succeeds, given that at least one direct predecessor did not)
    q_lower           prob          lower end of the 95 % interval
    q_upper           prob          upper end
    q_basis           string        observed, estimated or prior
    q_n               int64         count behind q
    q_reason          string        why q or its interval is NULL; NULL where neither is
    duration_ms_mean  ms            mean working time
    duration_ms_p50   ms            median working time
    duration_ms_p90   ms            90th percentile
    duration_basis    string        observed; NULL where the time is unknown
    duration_n        int64         count behind the duration
    duration_reason   string        why the duration is NULL
    wait_ms_mean      ms            mean waiting time before it, never part of its duration
    wait_ms_p50       ms            median waiting time before it
    wait_ms_p90       ms            90th percentile
    wait_n            int64         count behind the waiting time; its basis is observed
    wait_reason       string        why the waiting time is NULL
    cost_usd_mean     usd           mean cost
    cost_usd_p50      usd           median cost
    cost_usd_p90      usd           90th percentile
    cost_basis        string        observed or rate; NULL where the cost is unknown
    cost_n            int64         count behind the cost
    cost_reason       string        why the cost is NULL
    in_degree         int64         edges into it
    out_degree        int64         edges out of it
    pagerank          float         by the engine in the manifest
    component         string        weakly connected component
    community         string        label propagation
""",
)

TASK_IMPLEMENTATIONS = dataset(
    "wkg/task_implementations",
    "one row, one way of carrying out a task",
    "task_id actor_kind model actor_group",
    """
    task_id           id            the task
    actor_kind        string        human, model, code, or NULL
    model             string        name of the AI model
    actor_group       string        group or role of the people who did it, as the source's events have it; NULL where
                                    they have none
    clients           list<string>  clients that have done it this way
    implementations   int64         times it was done this way
    instructions      list<string>  the most frequent instructions of this way
    p                 prob          as in wkg/tasks, of this way alone
    p_lower           prob          lower end of the 95 % interval
    p_upper           prob          upper end
    p_basis           string        observed, estimated (the task's) or prior
    p_n               int64         count behind p
    p_reason          string        why p or its interval is NULL; NULL where neither is
    q                 prob          likewise
    q_lower           prob          lower end of the 95 % interval
    q_upper           prob          upper end
    q_basis           string        observed, estimated (the task's) or prior
    q_n               int64         count behind q
    q_reason          string        why q or its interval is NULL; NULL where neither is
    duration_ms_mean  ms            mean working time
    duration_ms_p50   ms            median working time
    duration_ms_p90   ms            90th percentile
    duration_ms_deviation  ms       standard deviation of one doing's; NULL where fewer than two are known
    cost_usd_mean     usd           mean cost
    cost_usd_p50      usd           median cost
    cost_usd_p90      usd           90th percentile
    cost_usd_deviation  usd         standard deviation of one doing's; NULL where fewer than two are known
    cost_compute_usd  usd           mean compute part
    cost_model_usd    usd           mean model part
    cost_human_usd    usd           mean human part
    tokens_in         float         mean tokens read
    tokens_out        float         mean tokens written
    memory_gb         float         mean memory held
    threads           float         mean threads held
    basis             string        of p, as p_basis
    duration_basis    string        observed; NULL where the time is unknown
    cost_basis        string        observed or rate; NULL where the cost is unknown
    duration_n        int64         count behind the duration
    duration_reason   string        why the duration is NULL
    duration_ms_quantiles  list<ms>  its quantiles at the levels of
                           opus_pipelines.workflow.evaluation.lead_time
    wait_ms_mean      ms            mean waiting time before the task when it is done this way
    wait_ms_p50       ms            median waiting time
    wait_ms_p90       ms            90th percentile
    wait_n            int64         count behind the waiting time
    cost_n            int64         count behind the cost
    cost_reason       string        why the cost is NULL
""",
)

EDGES = dataset(
    "wkg/edges",
    "one row, one directed edge",
    "src dst",
    """
    src              id     task carried out first
    dst              id     task carried out directly after it
    transitions      int64  occurrences, |xi| of LWM (1)
    variants         int64  distinct task sequences with it
    gamma            prob   LWM (2) over the setting's unit
    probability      prob   transitions / all transitions out of src
    wait_ms_mean     ms     mean waiting time between the two: from the end of src to the start of dst
    wait_ms_p50      ms     median waiting time
    wait_ms_p90      ms     90th percentile
    wait_n           int64  count behind the waiting time
    wait_with_work_n  int64  of these, how often the duration of dst is unknown, so that its work is part of the waiting
                             time
    dst_p            prob   P(dst succeeds directly after src | all its predecessors did), drawn to the p of dst by
                            1 - dst_p_gamma; NULL where no outcome is known
    dst_p_n          int64  outcomes of dst behind it
    dst_p_successes  int64  of these, successes
    dst_p_gamma      prob   weight of the outcomes of this pair: LWM (2) over dst_p_n, with a lambda fitted on held-out
                            cases; 0 where the pair told no more of them than dst alone
    dst_q            prob   P(dst succeeds directly after src | at least one of its predecessors did not), likewise
    dst_q_n          int64  outcomes of dst behind it
    dst_q_successes  int64  of these, successes
    dst_q_gamma      prob   as dst_p_gamma
    dst_duration_ms_mean      ms     mean working time of dst directly after src, drawn to that of dst
    dst_duration_ms_observed  ms     its mean where it was timed, as it was observed
    dst_duration_n            int64  times behind it
    dst_duration_gamma        prob   as dst_p_gamma
    dst_cost_usd_mean         usd    mean cost of dst directly after src, drawn to that of dst
    dst_cost_usd_observed     usd    its mean where it is known, as it was observed
    dst_cost_n                int64  costs behind it
    dst_cost_gamma            prob   as dst_p_gamma
    implementations  int64  distinct implementations with it
    first_seen       ts     earliest
    last_seen        ts     latest
""",
)

WAITS = dataset(
    "wkg/waits",
    "one row, one distribution of waiting time",
    "level src dst actor_kind model actor_group",
    """
    level         string    edge_way (dst after src, done this way), edge, way (dst done this way), task or resource
                            (any task in this way)
    src           id        task carried out before; NULL: whatever came before
    dst           id        task that was waited for; NULL: any
    actor_kind    string    who does dst: human, model, code or NULL; NULL too where the level does not tell ways apart
    model         string    likewise
    actor_group   string    likewise
    wait_n        int64     waiting times counted, weighted
    with_work_n   int64     of these, how often the duration of dst is unknown, so that its work is part of the waiting
                            time
    wait_ms_mean  ms        mean
    wait_ms_p50   ms        median
    wait_ms_p90   ms        90th percentile
    wait_ms_quantiles  list<ms>  quantiles at the levels of opus_pipelines.workflow.evaluation.lead_time
""",
)

NEEDS = dataset(
    "wkg/needs",
    "what history needs",
    "industry client kind_of_case task_id",
    """
    industry         string        the industry
    client           string        the client; NULL = all
    kind_of_case     string        title of the cases it stands for; NULL = all
    task_id          id            the task
    alternatives     list<string>  task ids of which any one does
    cases_with       int64         cases with it, expected to succeed
    cases_without    int64         cases without it, expected to succeed
    success_with     int64         of cases_with, those that succeeded
    success_without  int64         of cases_without, those that succeeded
    lift             float         difference of the two rates
    lift_lower       float         lower end of the 95 % interval
    lift_upper       float         upper end
    lift_reason      string        why the lift or its interval is NULL
    adjusted_lift    float         the same among cases that did what was found needed before it; of any of its
                                   alternatives
    adjusted_lower   float         lower end of the 95 % interval
    adjusted_upper   float         upper end
    adjusted_lift_reason  string   why the adjusted lift or its interval is NULL
    needed           bool          must a workflow contain it, or one of its alternatives
""",
)

ALIASES = dataset(
    "wkg/task_aliases",
    "one row, one raw key of one source",
    "source industry task_key",
    """
    source      string  the source's folder name
    industry    string  the industry it was merged in
    task_key    string  raw identity inside the source
    title       string  its most frequent title there
    task_id     id      the task it became
    similarity  float   to the task's name, or to what is said of that: 1 for exact and normalised, NULL where a pin
                        alone says so
    method      string  exact, normalised, embedding or pinned
    former_task_ids  list<string>  tasks that it was published as before a merge or a split
""",
)

VARIANTS = dataset(
    "wkg/variants",
    "one row, one distinct task sequence of an industry and client",
    "industry client variant_id",
    """
    variant_id       id            hash of the sequence
    industry         string        the industry
    client           string        the client; NULL where unknown
    tasks            list<string>  task ids in order
    implementations  int64         times it was carried out
    success_known    int64         of those, with known outcome
    successes        int64         of those, that succeeded
""",
)

CONTEXTS = dataset(
    "wkg/contexts",
    "one row, one task that followed a context: the last steps of a case, ten at most; added up over all sources, and "
    "then without contexts of two or more steps that were seen less than three times",
    "depth context_id next_task",
    """
    depth        int64         steps of the context; the beginning of the case counts as one
    context_id   id            hash of the context
    at_start     bool          the case begins in front of its tasks
    tasks        list<string>  task ids of the context, the oldest first; empty for the beginning of a case alone
    next_task    id            task id of what followed; NULL where the case ended
    transitions  int64         times it followed
""",
)

CASES = dataset(
    "wkg/cases",
    "one row, one implementation as task ids: what generation looks up",
    "implementation_id",
    """
    implementation_id  id            the case
    source             string        the source's folder name
    industry           string        the industry
    client             string        the client; NULL where unknown
    contract           string        the contract; NULL where unknown
    kind_of_case       string        its title
    success            bool          as in history/implementations
    expected_outcome   bool          likewise
    weight             int64         likewise
    tasks              list<string>  task ids in order
    task_keys          list<string>  raw keys, in step with tasks
    task_cost_usd      list<usd>     cost of each, NULL where unknown
    task_duration_ms   list<ms>      working time of each, NULL where unknown
    actor_kinds        list<string>  who did each
    models             list<string>  name of the AI model that did each, NULL where none did
    actor_groups       list<string>  role or group of who did each, as in wkg/task_implementations
    attributes         map<string,string>  the case's own attributes, as in history/implementations
    started_at         ts            first start
    task_predecessors  list<list<int32>>  of each task the positions it directly follows; NULL = the one before
    p_ended            prob          P(the case had ended when its history was taken); NULL where it has no times, or is
                                     a model
    expected_rest      list<string>  task ids that are expected to follow, where it probably had not ended
    task_started_at    list<ts>      when each started, NULL where unknown
    task_wait_ms       list<ms>      waiting time before each, NULL where unknown; with its work where its working time
                                     is unknown
    lead_time_ms       ms            from the first start to the last end, waiting included
    kind               string        as in history/implementations: executed or model
    task_actors        list<string>  the person, program or AI model that did each, NULL where unknown
""",
)

EMBEDDINGS = dataset(
    "wkg/embeddings",
    "one row, one node's vector",
    "task_id",
    """
    task_id       id      the task
    content_hash  string  of the text embedded
    model         string  the encoder
    vector        vector  unit length
""",
)

IMPLEMENTATION_VECTORS = dataset(
    "wkg/implementation_vectors",
    "one row, one case's vector",
    "implementation_id",
    """
    implementation_id  id      the case
    vector             vector  of title, description and process context, unit length
""",
)

PROCEDURES = dataset(
    "wkg/procedures",
    "one row, one part of a distinct procedure of history",
    "procedure_id part",
    """
    procedure_id     id            hash of the procedure's text
    part             int32         which part of it, in order
    head             string        its heading; NULL where it has none
    is_title         bool          it heads a section, not a step
    sentences        list<string>  what it says
    either           list<int32>   in step with sentences: of those with one number one has to hold; NULL: it has to
                                   hold by itself
    implementations  list<string>  cases that were carried out under the procedure and asked for this part
    requests         list<string>  what they asked, the first 24 by text
""",
)

PROCEDURE_VECTORS = dataset(
    "wkg/procedure_vectors",
    "one row, one text of wkg/procedures, or one task's name",
    "text",
    """
    text    string  the text, as it was embedded
    vector  vector  unit length
""",
)

WKG_CHANGES = dataset(
    "wkg/changes",
    "one row, one figure of a task or an edge that differs from the snapshot before",
    "snapshot before kind src dst figure",
    """
    snapshot            id            the snapshot
    before              id            the snapshot that was current before it
    kind                string        task or edge
    src                 id            the task; of an edge its first task
    dst                 id            the second task of an edge; NULL of a task
    title               string        the name of src
    dst_title           string        the name of dst
    change              string        added, removed (figure is then implementations or transitions) or changed
    figure              string        the column of wkg/tasks or wkg/edges; critical_in: groups of wkg/needs in which
                                      the task is critical
    value_before        float         its value in the snapshot before; NULL where it was unknown or the task or edge
                                      was not there
    value_after         float         its value in the snapshot
    text_before         string        the same of a title
    text_after          string        the same of a title
    because             string        cases (they hold the task or edge and came, went or changed), or what else changed
    sources             list<string>  the sources of these cases
    cases_added         int64         of these cases, those that came
    cases_removed       int64         those that went
    cases_changed       int64         those that have another content
    implementation_ids  list<string>  the first 20 of these cases by id: rows of history/implementations
""",
    partitions="snapshot",
)
