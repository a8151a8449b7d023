"""Medical coding of two kinds of visit: data points, problem points, level of risk and level of the visit."""

from opus_pipelines.quality.sample.model import (
    Check,
    Do,
    Industry,
    Kind,
    Maybe,
    Needed,
    Task,
    Together,
    by_name,
    code,
    human,
    large,
    small,
)

CODING_TASKS = by_name(
    Task(
        "Receive Visit Note",
        "Take the signed visit note from the record system.",
        ("visit note",),
        ("coding case",),
        {"code": "Run note_pull: fetch the signed note, refuse unsigned ones, open the coding case."},
        (code(1.0, 0.994, 0.02, 2.1),),
    ),
    Task(
        "Verify Patient Identity",
        "Make sure that note, encounter and insurance belong to the same person.",
        ("coding case", "encounter"),
        ("identity check",),
        {
            "code": "Run identity_match over name, date of birth and encounter number.",
            "human": "Compare name, date of birth and encounter number on note and registration; return the note "
            "when they differ.",
        },
        (code(0.75, 0.992, 0.02, 2.6), human(0.25, 0.99, 0.08, 4)),
    ),
    Task(
        "Confirm New Patient Status",
        "Confirm that no physician of the same specialty in the group saw the patient within three years.",
        ("coding case", "visit history"),
        ("patient status",),
        {
            "code": "Run three_year_lookup over the group's encounters by specialty.",
            "human": "Search the group's encounters of the last three years for the same specialty, and note what "
            "you searched.",
        },
        (code(0.65, 0.98, 0.04, 3.4), human(0.35, 0.99, 0.2, 6)),
    ),
    Task(
        "Compare Prior Visits",
        "Read the last visits, so that known problems are told from new ones.",
        ("coding case", "visit history"),
        ("problem history",),
        {
            "model": "From the last three notes list each problem with its status: stable, worse, resolved. Mark the "
            "problems that "
            "today's note names for the first time."
        },
        (small(0.55, 0.95, 0.05, 6800, 420), large(0.45, 0.982, 0.12, 6800, 460)),
    ),
    Task(
        "Count Data Points",
        "Count tests ordered or read, records reviewed and independent historians.",
        ("visit note",),
        ("data points",),
        {
            "model": "Count the data points by the table: each unique test, each outside record, an independent "
            "historian, an independent "
            "interpretation. Quote the line for each point.",
            "human": "Count the data points by the table, marking the line of the note for each.",
        },
        (small(0.5, 0.945, 0.05, 3100, 340), large(0.35, 0.98, 0.12, 3100, 360), human(0.15, 0.98, 0.2, 7)),
    ),
    Task(
        "Count Problem Points",
        "Count and weigh the problems that were addressed in the visit.",
        ("visit note",),
        ("problem points",),
        {
            "model": "List each problem that the note addresses with its kind (self-limited, stable chronic, "
            "worsening, new with workup) "
            "and points. Leave out what is only mentioned.",
            "human": "List the problems addressed, classify each by the table and add up the points.",
        },
        (large(0.5, 0.98, 0.12, 3000, 380), small(0.35, 0.94, 0.05, 3000, 350), human(0.15, 0.98, 0.2, 8)),
    ),
    Task(
        "Assess Level of Risk",
        "Decide the risk of complications from problems, tests and treatment.",
        ("visit note",),
        ("level of risk",),
        {
            "model": "Decide the level of risk (minimal, low, moderate, high) by the table of risk. Name the one "
            "entry that decides it.",
            "human": "Read plan and medication, find the highest entry of the table of risk that is documented, and "
            "name it.",
        },
        (large(0.65, 0.972, 0.12, 2700, 240), human(0.35, 0.982, 0.2, 9)),
    ),
    Task(
        "Determine Visit Level",
        "Derive the level of the visit from data points, problem points and risk.",
        ("data points", "problem points", "level of risk"),
        ("visit level",),
        {
            "code": "Run level_table: two of the three elements decide the level.",
            "model": "Combine data points, problem points and level of risk: two of three decide. State level and "
            "code, and which two "
            "decided.",
        },
        (code(0.65, 0.96, 0.15, 1.4), large(0.35, 0.965, 0.3, 1400, 180)),
    ),
    Task(
        "Assign Diagnosis Codes",
        "Assign the diagnosis codes that support the level.",
        ("visit note", "problem points"),
        ("diagnosis codes",),
        {
            "model": "Assign the most specific diagnosis code for each problem addressed, in order of importance, "
            "and say which problem "
            "each supports.",
            "human": "Look up each problem in the index, confirm in the tabular list, and put the codes in order of "
            "importance.",
        },
        (large(0.5, 0.972, 0.10, 4100, 320), small(0.3, 0.93, 0.04, 4100, 300), human(0.2, 0.98, 0.15, 9)),
    ),
    Task(
        "Audit Code Level",
        "A certified auditor codes the visit again, blind, and compares.",
        ("visit note", "visit level", "diagnosis codes"),
        ("audit finding",),
        {
            "human": "Code the visit again without looking at the result. Compare; where the levels differ, decide "
            "and write down the "
            "reason."
        },
        (human(1.0, 0.99, 0.55, 22),),
    ),
    Task(
        "Query Physician",
        "Ask the physician to clarify what the note leaves open.",
        ("audit finding",),
        ("physician answer",),
        {
            "human": "Write a query that does not lead: quote the note, say what is unclear, offer no answer. Wait "
            "for an addendum.",
            "code": "Run query_template for the finding, and set a reminder for two days.",
        },
        (human(0.65, 0.99, 0.1, 11), code(0.35, 0.99, 0.03, 3.0)),
    ),
    Task(
        "Check Payer Edits",
        "Run the payer's edits over level, diagnoses and modifiers.",
        ("visit level", "diagnosis codes"),
        ("edit result",),
        {
            "code": "Run payer_edits for the plan; each edit that fires names the pair of codes.",
            "human": "Go through the edits that fired, with the payer's manual, and decide each one.",
        },
        (code(0.6, 0.985, 0.3, 2.8), human(0.4, 0.985, 0.5, 10)),
    ),
    Task(
        "Release Charge",
        "Send the charge to billing.",
        ("edit result",),
        ("charge",),
        {"code": "Run charge_release with level, diagnosis codes and modifiers."},
        (code(1.0, 0.996, 0.01, 1.5),),
    ),
    Task(
        "File Coding Record",
        "Keep how the level was reached for the payer's auditors.",
        ("charge",),
        ("coding record",),
        {"code": "Run coding_archive with points, risk, level and who decided."},
        (code(1.0, 0.998, 0.01, 1.1),),
    ),
)

MEDICAL_CODING = Industry("medical coding", 42.0, CODING_TASKS)

_POINTS = {"Count Data Points": 0.4, "Count Problem Points": 0.35, "Assess Level of Risk": 0.25}
_COMPLAINTS = ("chest tightness", "low back pain", "a lasting cough", "dizziness")

VISIT_KINDS = (
    Kind(
        "New patient visit",
        "First visit of a new patient aged {age} with {complaint} to {clinic}; the physician took a full history, "
        "{workup}, and the "
        "visit is to be coded and charged.",
        {
            "age": ("34", "58", "71"),
            "complaint": _COMPLAINTS,
            "clinic": ("the Elm Street clinic", "the Harbour clinic"),
            "workup": ("ordered blood tests and imaging", "read outside records"),
        },
        "New patients: confirm the three-year rule first; count data points, problem points and risk; two of three "
        "decide the level.",
        (
            Do("Receive Visit Note"),
            Do("Verify Patient Identity"),
            Do("Confirm New Patient Status"),
            Together(_POINTS),
            Do("Determine Visit Level"),
            Do("Assign Diagnosis Codes"),
            Needed("Audit Code Level", 0.14, 0.8),
            Maybe("Query Physician", 0.15),
            Check("Check Payer Edits", "Determine Visit Level", 0.7),
            Do("Release Charge"),
            Do("File Coding Record"),
        ),
        280,
    ),
    Kind(
        "Established patient visit",
        "Follow-up of an established patient for {problem} at {clinic}; {change} since the last visit, {action}, and "
        "the visit is to "
        "be coded and charged.",
        {
            "problem": ("diabetes", "high blood pressure", "asthma", "knee arthritis"),
            "clinic": ("the Elm Street clinic", "the Harbour clinic"),
            "change": ("stable", "somewhat worse", "a new complaint"),
            "action": ("medication was adjusted", "medication goes on as before"),
        },
        "Established patients: compare with the last visits, then count data points, problem points and risk; two of "
        "three decide the "
        "level.",
        (
            Do("Receive Visit Note"),
            Do("Verify Patient Identity"),
            Do("Compare Prior Visits"),
            Together(_POINTS),
            Do("Determine Visit Level"),
            Do("Assign Diagnosis Codes"),
            Needed("Audit Code Level", 0.14, 0.8),
            Maybe("Query Physician", 0.1),
            Check("Check Payer Edits", "Determine Visit Level", 0.7),
            Do("Release Charge"),
            Do("File Coding Record"),
        ),
        300,
    ),
)
