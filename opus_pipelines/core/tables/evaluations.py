"""Declares scores on task sets, the runs of programs and the searches for better ones, and the flows of contracts."""

from collections.abc import Mapping

from opus_pipelines.core.tables.declaration import Dataset, dataset, struct

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
PROGRAM_RUNS = dataset(
    "programs/runs",
    "one row, one run of a workflow program on one task; opus program run writes them",
    ("run"),
    """
    run          id      hash of the program, the task, the executor and the limit of rounds
    program      id      hash of the program's text
    title        string  name of the program's file
    task         string  id of the task
    task_text    string  what was asked
    executor     string  what answered the steps, with its version
    status       string  ended by a terminal step, or max_rounds where the limit of rounds ended it
    rounds       int64   steps that were carried out
    answer       string  answer of the last step
    failures     int64   steps whose tool failed
    tokens_in    int64   tokens of all questions to a language model; NULL where none was asked
    tokens_out   int64   tokens of its answers
    cost_usd     usd     cost of the answers and tools; NULL where any is unknown
    client       string  client whose task it is; NULL where none is stated
""",
    partitions="run_key",
)
PROGRAM_STEPS = dataset(
    "programs/steps",
    "one row, one round of a run: the trace is complete",
    ("run round"),
    """
    run            id                  the run
    round          int64               1 for the first
    step           string              name of the step
    kind           string              process, decision or terminal
    instruction    string              what the step says
    notes          list<string>        entries of the notebook that were read
    answer         string              what the step led to
    tool           string              the tool that was called; NULL where none was
    arguments      map<string,string>  its arguments as text
    status         string              answered, no_answer, bad_instruction, bad_arguments, failed, hanging, wrong_type
                                       or no_tool_chosen
    branch         string              key of the branch that was taken; NULL at the end
    branch_by      string              only, key, similar, model, other or first
    next_step      string              the step that followed; NULL at the end
    tokens_in      int64               tokens of the questions of this step
    tokens_out     int64               tokens of their answers
    cost_usd       usd                 cost of this step
    duration_ms    ms                  stated time of the tool; NULL where it is unknown
""",
    partitions="run_key",
)
PROGRAM_SEARCHES = dataset(
    "programs/searches",
    "one row, one search for a better program with one seed; opus program improve writes them",
    ("search method interpreter seed"),
    """
    search         id      hash of the tasks, the beginning, the reward, the methods, the limit of calls and the seeds
    method         string  how programs were proposed, or manual for the program at the beginning
    interpreter    string  what carried the programs out
    seed           int64   seed of the method
    reward         string  name of the reward
    calls          int64   calls of the reward that were used; the limit is the same for all methods
    begin_select   float   reward of the program at the beginning on the tasks to select on
    begin_report   float   the same on the tasks that were held out
    best_select    float   best reward on the tasks to select on
    best_report    float   reward of that program on the held-out tasks, which was asked for once
    optimum_report  float  best possible reward on the held-out tasks; the search does not know it
    valid_share    float   share of the proposed programs that are valid
    has_signal     bool    the rewards differed
    before         string  the program at the beginning as text
    after          string  the best program as text
""",
    partitions="search_key",
)
PROGRAM_CURVES = dataset(
    "programs/curves",
    "one row, one point of the learning curve of a search",
    ("search method interpreter seed call"),
    """
    search       id      the search
    method       string  how programs were proposed
    interpreter  string  what carried the programs out
    seed         int64   seed of the method
    call         int64   calls of the reward by then
    best         float   best reward by then on the tasks to select on
""",
    partitions="search_key",
)

EVALUATION_FLOWS = dataset(
    "evaluations/flows",
    "one row, one requirement answered by one writer of enterprise flows; opus flow compare --record writes them",
    ("evaluation model item"),
    """
    evaluation               id            hash of the examples, the catalogue, the models and what they wrote
    model                    string        the writer: composer, a baseline or a language model with its prompt
    item                     string        id of the requirement
    kind                     string        who wrote the requirement: generated, handwritten, handwritten in the second
                                           set, or own
    part                     string        held out, or tune where a writer may have learnt from it
    requirement              string        the text
    tags                     list<string>  what people say of the requirement
    steps                    list<string>  the flow's steps in order
    gold_steps               list<string>  the reference's steps in order
    flowsim                  float         FlowSim with inputs (2505.24189)
    flowsim_outline          float         FlowSim of the outlines
    valid_flowsim            float         the same with inputs, 0 where the flow has a structure error
    valid_flowsim_outline    float         the same of the outlines
    tree_bleu                float         share of the reference's (parent, child) labels that the flow has
    trigger_match            float         1 where type and inputs of the triggers are equal; NULL without triggers
    trigger_type_match       float         1 where the types are equal; NULL without triggers
    component_match          float         Jaccard index of the sets of components
    bag_of_steps             float         F1 of the multisets of steps
    bag_of_steps_jaccard     float         Jaccard index of the multisets of steps
    hallucinated_steps       float         share of the steps that the catalogue does not have; NULL without steps
    hallucinated_tables      float         share of the tables that the catalogue does not have; NULL without tables
    structure_errors         int64         number of structure errors
    repairs                  int64         what a language model wrote outside the catalogue, and unsound inputs
                                           that were taken out; 0 for other writers; NULL in older rows
    problem                  string        why there is no flow; NULL where there is one
    duration_ms              int64         time that the writer took
    tokens_in                int64         tokens read; NULL where they are not counted
    tokens_out               int64         tokens written; NULL where they are not counted
    cost_usd                 usd           price of the tokens by the shipped table; NULL where it is not known
""",
    partitions="evaluation_key",
)

RETRIEVED_ACTIVITY = struct(
    "retrieved_activity",
    """
    activity     string  id of the activity
    description  string  what it does
    score        float   log odds by the ranker; higher is nearer
    clause       string  the clause of the utterance that it answers best
""",
)
_PARTITIONS = "client_key contract_key batch_key"
_SCORES = """
    tags               list<string>  what people say of the utterance
    exact_string       float         1 where the flow is the reference as text
    exact_alpha        float         1 where it is the reference up to the names of variables
    exact_semantic     float         1 where the normal forms are equal
    relaxations        list<string>  what the semantic match forgave
    parsed             float         1 where there is a flow of the grammar
    syntax_f1          float         F1 of the multisets of (kind, activity) of statements
    activity_f1        float         F1 of the multisets of activities
    hallucination      float         share of the calls that the catalogue does not have; NULL without calls
    edit_faithfulness  float         share of the prior's elements that should stay and that stay with their ids; NULL
                                     without a prior in BPMN
    recall_10          float         share of the reference's activities among the ten retrieved ones and those of the
                                     prior; NULL for a control
    recall_50          float         the same among fifty
    duration_ms        ms            time that the flow took; NULL for a control
    repaired           int64         calls of a language model outside the catalogue, which were replaced; NULL where
                                     none was asked
    tokens_in          int64         tokens read by a language model; NULL where none was asked
    tokens_out         int64         tokens that it wrote
    cost_usd           usd           price of the tokens; 0 where no language model was asked, NULL where it is unknown
"""

FLOW_CATALOGUE = dataset(
    "flows/catalogue",
    "one row, one activity that the flows of a contract may call; opus flow batch writes them",
    ("client contract batch activity"),
    """
    client       string  client
    contract     string  contract
    batch        id      hash of the catalogue, the utterances, the examples, the encoder and the version of the method
    activity     string  id of the activity
    description  string  what it does
    application  string  application that the id names; NULL where it names none
    object       string  what the activity works on; NULL where the id names nothing
    operation    string  create, retrieve, update, delete or another; NULL where it is not known
    version      string  version that the id names; NULL where it names none
    origin       string  the file, the contract's catalogue, or the snapshot that it comes from
""",
    partitions=_PARTITIONS,
)
FLOWS = dataset(
    "flows/flows",
    "one row, one utterance of a contract with its flow, or the reason why there is none; opus flow batch writes them",
    ("client contract batch file line"),
    """
    client         string                    client
    contract       string                    contract
    batch          id                        the batch, as in flows/catalogue
    file           string                    file of the utterance, in the contract's folder flows
    line           int64                     its line or row in the file, from 1
    item           string                    uid of the utterance; NULL where it states none
    utterance      string                    what was asked; a longer text than 2,000 characters is cut
    kind           string                    new, or edit where a flow is edited
    status         string                    written; refused: no flow can be made of it; rejected: the row cannot be
                                             read; failed: an error of the program
    reason_code    string                    why there is no flow, in one word; NULL where there is one
    reason         string                    why there is no flow, as a sentence
    sequence       string                    the flow as Python IR
    bpmn           string                    the flow as BPMN 2.0
    document       string                    the flow as JSON of an enterprise platform; NULL for flows of activities
    structure_errors  int64                  structure errors of that JSON; NULL without it
    prior          string                    the flow before the edit as Python IR; NULL for a new flow
    operations     list<string>              the edit operations
    steps          list<string>              the chosen steps in the order of reading
    probabilities  list<float>               the probability of each chosen step
    retrieved      list<retrieved_activity>  the activities that were retrieved, best first
    backend        string                    what wrote the flow: ranker, composer, or the language model's backend
    repaired       int64                     calls that a language model made outside the catalogue and that were
                                             replaced; NULL where none was asked
    tokens_in      int64                     tokens read by a language model; NULL where none was asked
    tokens_out     int64                     tokens that it wrote
    cost_usd       usd                       price of the tokens; 0 where no language model was asked, NULL where it is
                                             unknown
    calls          int64                     calls of activities in the flow
    user_tasks     int64                     user tasks in the flow
    duration_ms    ms                        time that the flow took
    made_at        ts                        when the batch was made
""",
    partitions=_PARTITIONS,
)
FLOW_SCORES = dataset(
    "flows/scores",
    "one row, one flow of a contract beside its reference, of the writer or the baseline; opus flow batch writes them",
    ("client contract batch system item"),
    """
    client             string        client
    contract           string        contract
    batch              id            the batch, as in flows/catalogue
    system             string        flow writer, the backend of a language model, or baseline: each clause becomes the
                                     activity of the highest cosine
    item               string        uid of the utterance
"""
    + _SCORES.lstrip("\n"),
    partitions=_PARTITIONS,
)
EVALUATION_UTTERANCES = dataset(
    "evaluations/utterances",
    "one row, one utterance of a task set answered by one system; opus evaluate writes them",
    ("evaluation system item"),
    """
    evaluation         id            hash of the utterances, their references, the catalogue, what was learnt from, the
                                     encoder, and the flows that were written
    task_set           string        name of the folder or the file
    protocol           string        folds, cross domain, examples, or catalogue alone: what the writer learnt from
    system             string        flow writer, the backend of a language model, or baseline: each clause becomes the
                                     activity of the highest cosine
    item               string        uid of the utterance
    sequence           string        the flow as Python IR; NULL where there is none
    gold               string        the reference as Python IR
    reason             string        why there is no flow
"""
    + _SCORES.lstrip("\n"),
    partitions="evaluation_key",
)
FLOW_DATASETS: Mapping[str, Dataset] = {d.name: d for d in (FLOW_CATALOGUE, FLOWS, FLOW_SCORES)}
