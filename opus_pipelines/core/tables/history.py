"""Declares the tables of history, and the forecasts of running cases.

Declares the tables of history: what was read, from where, and what could not be used.
"""

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
    format                string  xes, csv, jsonl, parquet, xlsx, ocel, bpmn or n8n
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


FORECAST_CASES = dataset(
    "forecasts/cases",
    "one row, one running case; opus forecast writes them, and the newest forecast of a source replaces the one before",
    ("forecast case_id"),
    """
    forecast                 id            hash of the history, the running cases and the options
    source                   string        source whose history the forecast was learnt from
    case_id                  string        as the source has it
    client                   string        client of the case
    contract                 string        contract of the case
    snapshot                 id            snapshot that the forecast was made from; kept while its history is the same
    steps                    int64         events so far
    last_activity            string        the last of them
    last_event_at            ts            when it happened
    seen_until               ts            until when nothing more happened
    next_activity            string        most probable next activity; NULL where that is the end of the case
    p_next                   prob          its probability
    p_end                    prob          probability that nothing follows
    rest                     list<string>  expected activities of the rest of the case, if it goes on
    remaining_ms             ms            median of the time from the last event to the end
    remaining_ms_low         ms            lower end of its 90 % interval
    remaining_ms_high        ms            upper end of its 90 % interval
    remaining_cost_usd       usd           median of the cost still to come; NULL where history has no costs
    remaining_cost_usd_low   usd           lower end of its 90 % interval
    remaining_cost_usd_high  usd           upper end of its 90 % interval
    p_success                prob          probability of success; NULL where history has no outcomes
    time_limit_ms            ms            time that a case may take from its first event; NULL where none was stated
    p_late                   prob          probability of exceeding it
    p_limit                  prob          probability of breaking at least one limit; NULL where none was stated
    do_next                  string        the activity to do now; NULL where the case seems to have ended
    do_next_reason           string        most probable, higher success where similar cases succeeded more often
                                           with it, or fewer broken limits where they broke fewer with it
    similar                  int64         past prefixes of cases that the figures rest on
""",
    partitions="source_key forecast_key",
)
FORECAST_STEPS = dataset(
    "forecasts/next_steps",
    "one row, one possible next activity of a running case",
    ("forecast case_id place"),
    """
    forecast      id      the forecast
    source        string  source whose history the forecast was learnt from
    case_id       string  as the source has it
    place         int64   1 for the most probable one
    activity      string  the next activity; NULL for the end of the case
    probability   prob    probability that it is next
    p_success     prob    probability of success if it is; NULL where history has no outcomes
    remaining_ms  ms      median of the remaining time if it is next
    p_limit       prob    probability of breaking at least one limit if it is next; NULL where none was stated
    similar       int64   similar past prefixes that it followed
""",
    partitions="source_key forecast_key",
)
FORECAST_LIMITS = dataset(
    "forecasts/limits",
    "one row, one limit of a running case: of its lead time, cost or steps, or by when one activity is done",
    ("forecast case_id place"),
    """
    forecast     id      the forecast
    source       string  source whose history the forecast was learnt from
    case_id      string  as the source has it
    place        int64   1 for the limit that is most probably broken
    kind         string  lead time, cost, steps, or service level (of one activity)
    activity     string  of a service level, the activity that is limited; NULL for other kinds
    after        string  of a service level, the activity from which it counts; NULL: the first event
    unit         string  unit of the three figures below: ms, usd or steps
    limit_value  float   the limit
    so_far       float   used until the last event; of an activity that is done, until it was done
    expected     float   median of what is used in the end; NULL where unknown, or where the activity hardly comes
    p_broken     prob    probability of exceeding the limit; NULL where history does not know the cost or the activity
    stated_by    string  command, contract or settings
""",
    partitions="source_key forecast_key",
)
