"""Declares the flows of contracts: the catalogue of activities, the flow of each utterance, and its scores."""

from collections.abc import Mapping

from opus_pipelines.core.tables.declaration import Dataset, dataset, struct

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
    duration_ms        ms            time that the flow took
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
    prior          string                    the flow before the edit as Python IR; NULL for a new flow
    operations     list<string>              the edit operations
    steps          list<string>              the chosen steps in the order of reading
    probabilities  list<float>               the probability of each chosen step
    retrieved      list<retrieved_activity>  the activities that were retrieved, best first
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
    system             string        flow writer, or baseline: each clause becomes the activity of the highest cosine
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
                                     encoder and the version of the method
    task_set           string        name of the folder or the file
    protocol           string        folds, cross domain, examples, or catalogue alone: what the writer learnt from
    system             string        flow writer, or baseline: each clause becomes the activity of the highest cosine
    item               string        uid of the utterance
    sequence           string        the flow as Python IR; NULL where there is none
    gold               string        the reference as Python IR
    reason             string        why there is no flow
"""
    + _SCORES.lstrip("\n"),
    partitions="evaluation_key",
)
FLOW_DATASETS: Mapping[str, Dataset] = {d.name: d for d in (FLOW_CATALOGUE, FLOWS, FLOW_SCORES)}
