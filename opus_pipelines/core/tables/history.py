"""Declares the tables of history: what was read, from where, and what could not be used."""

from opus_pipelines.core.tables.declaration import dataset, struct

TASK_IMPLEMENTATION = struct(
    "task_implementation",
    """
    position          int32               place in the order of carrying out, from 0
    task_key          string              raw identity inside its source, exactly as the source has it
    title             string              what a person calls it
    description       string              what it does, where the source tells
    instructions      list<string>        how it was to be done
    actor             string              who or what did it
    actor_kind        string              human, model (an AI model) or code
    model             string              name of the AI model, where one did it
    started_at        ts                  start
    ended_at          ts                  end; NULL when it never completed
    duration_ms       ms                  working time; NULL where only one moment is known
    wait_ms           ms                  from the end of the task before it to its start
    cost_usd          usd                 what it cost; the sum of the parts known
    cost_compute_usd  usd                 programs' and machines' part
    cost_model_usd    usd                 AI models' part
    cost_human_usd    usd                 people's part
    cost_basis        string              observed (stated by the source) or rate (time or tokens x a price); NULL
                                          without cost
    tokens_in         int64               tokens read by the model
    tokens_out        int64               tokens written by the model
    memory_gb         float               memory held while it ran
    threads           float               threads held while it ran
    success           bool                did this step do what it should; NULL where unknown
    inputs            list<string>        data it takes
    outputs           list<string>        data it leaves
    predecessors      list<int32>         positions it directly follows; NULL = the one before
    attributes        map<string,string>  the event's other attributes, after redaction
""",
)

IMPLEMENTATIONS = dataset(
    "history/implementations",
    "one row, one Workflow Implementation",
    "implementation_id",
    """
    implementation_id  id                  hash of source and case id
    source             string              the source's folder name
    case_id            string              as the source has it
    path               string              the file it came from, inside the source's folder
    kind               string              executed, or model for a process model
    process_context    string              the procedure it was carried out under, where known
    expected_outcome   bool                the outcome that was right for this case; false: it was right to refuse
    industry           string              of the source's settings or the case's own columns
    client             string              likewise; NULL where unknown
    contract           string              likewise; NULL where unknown
    title              string              what the work was asked to do
    description        string              the request in words
    attributes         map<string,string>  what the client gave, after redaction
    started_at         ts                  first start
    ended_at           ts                  last end
    success            bool                by the source's success rule; NULL where no rule can tell
    weight             int64               how many times this was carried out
    cost_usd           usd                 stated by the source for the case, else the sum of its tasks'
    tasks              list<task_implementation>  Task Implementations, in order of carrying out
    content_hash       string              hash of everything above
""",
    partitions="source_key content",
)

SOURCES = dataset(
    "history/sources",
    "one row, one source file ever seen",
    "source path",
    """
    source                string  the source's folder name
    path                  string  the file, inside that folder
    content_hash          string  of the file's bytes and the source's settings
    bytes                 int64   size of the file
    format                string  xes, csv, jsonl, parquet, ocel, bpmn or n8n
    status                string  loaded, unchanged, rejected, held (read, but the source keeps its last good version)
                                  or gone
    records               int64   records read: used + not work + rejected
    records_used          int64   records that became part of an implementation
    records_not_work      int64   schedule, assign and the like, of a forgotten client, duplicate or corrected: no task
    records_rejected      int64   records in history/rejects
    implementations       int64   cases that came of it
    task_implementations  int64   tasks in them
    first_seen            ts      first rebuild that saw it
    last_read             ts      last rebuild that read it
    reason                string  why it was rejected, or what its settings lack; NULL otherwise
    currencies            list<string>  of its amounts, but for the dollar
    records_duplicate     int64   of those not work: they say the same event as another record of the source
    records_corrected     int64   of those not work: a later record of the source says the same event anew
    cases_quarantined     int64   cases put aside whole because of a rejected record in this file
    records_without_case  int64   of those rejected: they do not tell which case they belong to
    encoding              string  how its text is encoded, as stated or detected; NULL for formats that say so
                                  themselves
    mixed_encodings       string  where its encodings are mixed: which lines and bytes
    content               string  what was read of the source: its partition of history/rejects, and of
                                  history/implementations if in use
    version               string  content of the version of the source that is in use; NULL where none is
""",
)

REJECTS = dataset(
    "history/rejects",
    "one row, one record that could not be used",
    "source path position",
    """
    source          string  the source's folder name
    path            string  the file, inside that folder
    position        int64   where in the file
    position_unit   string  byte, line or record
    reason_code     string  short and stable, for counting; case_quarantined: usable, but its case was put aside whole
    reason          string  a sentence
    record          string  its first 4 KiB as text, redacted; of a usable record that went with its case: what was read
                            of it
    case_id         string  the case it belongs to; NULL where it does not tell
    cause_path      string  the file of the rejected record because of which this one went too; NULL for that record
                            itself
    cause_position  int64   its position in that file
""",
    partitions="source_key content",
)
