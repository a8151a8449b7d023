"""Declares the tables of generation: one intake on its way from documents to the Workflow Graph."""

from opus_pipelines.core.tables.declaration import INTAKE, RESULT, STRUCTS, result_dataset

STRUCTS["element"] = (
    ("element_id", "string"),
    ("role", "string"),
    ("modality", "string"),
    ("name", "string"),
    ("media_type", "string"),
    ("text", "string"),
    ("bytes", "int64"),
    ("sha256", "string"),
    ("left_out", "string"),
)
STRUCTS["stated"] = (("text", "string"), ("element_id", "string"), ("place", "string"))
STRUCTS["demanded"] = (
    ("kind", "string"),
    ("value", "string"),
    ("sentence", "string"),
    ("element_id", "string"),
    ("place", "string"),
    ("effect", "string"),
    ("status", "string"),
    ("asks", "string"),
    ("nearest", "list<string>"),
    ("why", "string"),
    ("differs", "string"),
)
STRUCTS["resolved"] = (("part", "string"), ("implementation_ids", "list<string>"))
STRUCTS["routed"] = (("task_id", "string"), ("similarity", "float"))
STRUCTS["attention"] = (("element_id", "string"), ("weight", "float"))
STRUCTS["instruction"] = (("kind", "string"), ("text", "string"))

INTAKES = result_dataset(
    "generation/intakes",
    "one row, one intake",
    "intake_id",
    """
    folder        string         the intake's folder
    received_at   ts             as stated, else NULL
    title         string         of intake.toml, else the folder
    industry      string         of the intake or the contract
    content_hash  string         of its bytes
    elements      list<element>  what was read, role input, output, process or contract
    constraints   string         those in force, as JSON
    gain_usd      usd            what a right output is worth; NULL where nobody states it
    gain_basis    string         observed (stated by contract or intake), prior (reward.default_gain_usd), or NULL
    status        string         generated, refused or failed
    reason        string         why it was refused or failed
""",
    head=INTAKE,
)

INTENTIONS = result_dataset(
    "generation/intentions",
    "one row, one Intention",
    "intake_id intention_id",
    """
    kind         string           complete or incomplete
    vector       vector           the encoded Intention, unit length
    goal         string           what is to be reached
    inputs       list<stated>     sentences of the client input, with element and place
    outputs      list<stated>     likewise of the wanted output; place names the cases where history had to tell
    rules        list<stated>     normative sentences of the process context
    constraints  list<demanded>   every demand, its effect (in force, or why not) and question; sentence NULL where
                                  stated in TOML
    rules_not_applied  int32      sentences that ask for what no constraint in force expresses, and that are not about
                                  other cases
    resolved     resolved         the part that the client did not give, context or output, and the cases it was
                                  resolved from
    routed       list<routed>     tasks near the Intention, LWM routing
    attention    list<attention>  weight of each element, and of each case that a missing part was resolved from
""",
)

NEIGHBOURS = result_dataset(
    "generation/neighbours",
    "one row, one near case",
    "intake_id intention_id implementation_id",
    """
    implementation_id  id     the case
    similarity         float  cosine with the Intention
    is_compared        bool   among the nearest ones that costs, savings, times and lead times of history are over
""",
)

SUBGRAPH_TASKS = result_dataset(
    "generation/subgraph_tasks",
    "one row, one node of a SWKG",
    "intake_id intention_id subgraph_id task_id",
    """
    subgraph_id  id      the SWKG, LWM (8)
    task_id      id      the task
    role         string  terminal or connector
""",
)

SUBGRAPH_EDGES = result_dataset(
    "generation/subgraph_edges",
    "one row, one edge of a SWKG",
    "intake_id intention_id subgraph_id src dst",
    """
    subgraph_id  id    the SWKG
    src          id    task
    dst          id    task after it
    gamma        prob  of the WKG's edge
""",
)

SEQUENCES = result_dataset(
    "generation/sequences",
    "one row, one task of a generated sequence",
    "intake_id intention_id sequence_id position",
    """
    sequence_id    id            the sequence
    subgraph_id    id            the SWKG it was written for
    position       int32         place in the sequence
    predecessors   list<int32>   positions it follows; NULL = the one before
    task_id        id            the task
    title          string        its name
    instructions   list<string>  how to do it
    score          float         the backend's score of the sequence
    is_new         bool          not in the catalogue
    sentence       string        the sentence of the intake's procedure that asks for it; NULL where none does
    backend        string        history, pointer, causal_lm, openai_compatible, or an added one
    model_version  string        what wrote it
""",
)

WFG_NODES = result_dataset(
    "generation/wfg_nodes",
    "one row, one node of the Workflow Graph",
    "intake_id intention_id node",
    """
    node          id            node of the WFG
    task_id       id            its task; NULL for input and output
    origin        string        history, lwm, connector, algorithm1, algorithm2, new, declared, decision
    sequence_ids  list<string>  sequences it came from
""",
)

WFG_EDGES = result_dataset(
    "generation/wfg_edges",
    "one row, one edge of the Workflow Graph",
    "intake_id intention_id src dst",
    """
    src           id            node
    dst           id            node after it
    origin        string        history, lwm, decision, algorithm1, algorithm2
    gamma         prob          of the WKG's edge; NULL where it has none
    sequence_ids  list<string>  sequences it came from
""",
)

RUNS = result_dataset(
    "generation/runs",
    "one row, one run of a contract: the only place with the clock",
    "run_id",
    """
    run_id         string   the run that made it
    generated_at   ts       when
    seconds        seconds  seconds per stage
    snapshot       id       the snapshot it was made from
    code_version   string   algorithm versions that it was made with, such as planning=1
    settings_hash  string   hash of the settings that matter
    tokens_in      int64    tokens that a language model read, for kept answers too; NULL where none was asked
    tokens_out     int64    tokens that it wrote
    cost_model_usd  usd    what these answers cost when they were asked for; NULL where a price is unknown
""",
    head=RESULT,
)
