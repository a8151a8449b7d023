"""Insurance claims: the tasks of motor and home claims, and the six kinds of claim of the sample's two insurers."""

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

INSURANCE_TASKS = by_name(
    Task(
        "Register Claim",
        "Open the claim file and give it a reference.",
        ("claim notice",),
        ("claim file",),
        {
            "code": "Run intake_register: create the claim file from the notice, set the reference, the line of "
            "business and the date of "
            "loss.",
            "human": "Open a claim file by hand, copy the notice into it and set reference, line of business and "
            "date of loss.",
        },
        (code(0.75, 0.993, 0.02, 2.4), human(0.25, 0.985, 0.03, 5)),
    ),
    Task(
        "Verify Coverage",
        "Establish whether the policy was in force and covers this loss, with its excess and limits.",
        ("claim file", "policy schedule"),
        ("coverage decision",),
        {
            "model": "Read the policy schedule and endorsements. State whether the policy was in force on the date "
            "of loss, which section "
            "answers the loss, "
            "the excess, and any limit or exclusion that applies. Quote the clause.",
            "human": "Open the policy, compare its period, sections, excess and endorsements with the loss, and "
            "record the coverage "
            "decision.",
        },
        (large(0.5, 0.985, 0.10, 5200, 420), small(0.3, 0.93, 0.04, 5200, 380), human(0.2, 0.98, 0.15, 11)),
    ),
    Task(
        "Extract Claim Details",
        "Turn the notice and its attachments into structured facts of the loss.",
        ("claim file", "claim notice"),
        ("claim facts",),
        {
            "model": "List the facts of the loss as fields: what happened, where, when, what is damaged, who else "
            "was there. "
            "Leave a field empty where the notice is silent; never guess."
        },
        (small(0.6, 0.955, 0.05, 2600, 520), large(0.4, 0.985, 0.12, 2600, 560)),
    ),
    Task(
        "Request Missing Documents",
        "Ask the policyholder for photographs, invoices or statements that the file still lacks.",
        ("claim facts",),
        ("document request",),
        {
            "code": "Run chase_documents: send the standard request for the items on the missing list and set a "
            "reminder for seven days.",
            "human": "Telephone or write to the policyholder, name the missing items and agree a date for them.",
        },
        (code(0.65, 0.995, 0.03, 3.0), human(0.35, 0.99, 0.08, 9)),
    ),
    Task(
        "Assess Glass Damage",
        "Decide from photographs whether the glass is repaired or replaced.",
        ("photographs", "claim facts"),
        ("glass decision",),
        {
            "model": "Look at the photographs of the glass. A chip below 25 mm outside the driver's view is "
            "repaired; everything else is "
            "replaced. State which, and why.",
            "human": "Measure the damage on the photographs and decide between repair and replacement by the glass "
            "rule.",
        },
        (large(0.65, 0.95, 0.3, 3800, 260), human(0.35, 0.965, 0.35, 8)),
    ),
    Task(
        "Book Glass Fitter",
        "Give the job to a fitter of the network and agree a time with the driver.",
        ("glass decision",),
        ("fitter booking",),
        {
            "code": "Run fitter_booking: offer the three nearest slots of the network and book the one that the "
            "driver takes.",
            "human": "Call a fitter of the network and the driver, and agree a time and a place.",
        },
        (code(0.7, 0.988, 0.02, 4.5), human(0.3, 0.985, 0.04, 10)),
    ),
    Task(
        "Determine Liability",
        "Decide who answers for the collision, in shares.",
        ("claim facts", "statements"),
        ("liability split",),
        {
            "human": "Read both statements and the sketch, apply the liability table and record the split with its "
            "reason.",
            "model": "Compare both statements with the liability table. Give the split in per cent, the row of the "
            "table, and what speaks "
            "against it.",
        },
        (human(0.6, 0.975, 0.12, 22), large(0.4, 0.96, 0.10, 6100, 640)),
    ),
    Task(
        "Check Fraud Indicators",
        "Compare the claim with the fraud indicators and earlier claims.",
        ("claim facts", "claims history"),
        ("fraud score",),
        {
            "code": "Run fraud_screen over claims history, telephone numbers and repairers, and attach the score "
            "with its three strongest "
            "indicators.",
            "model": "Compare the claim with the list of indicators. Name each one that is met, with the sentence of "
            "the file that meets "
            "it.",
        },
        (code(0.7, 0.99, 0.03, 6.0), small(0.3, 0.96, 0.04, 3400, 300)),
    ),
    Task(
        "Inspect Vehicle",
        "An engineer looks at the vehicle and confirms damage, cause and value.",
        ("claim facts", "vehicle"),
        ("engineer report",),
        {
            "human": "Inspect the vehicle at the garage. Confirm that the damage fits the account, note earlier "
            "damage, and state "
            "repairable or total loss with the market value."
        },
        (human(1.0, 0.99, 0.5, 65),),
    ),
    Task(
        "Inspect Property",
        "A loss adjuster visits the home and confirms cause and extent of the damage.",
        ("claim facts", "property"),
        ("adjuster report",),
        {
            "human": "Visit the home. Find the cause, take moisture readings or measurements room by room, "
            "photograph everything and list "
            "what is beyond repair."
        },
        (human(1.0, 0.99, 0.5, 95),),
    ),
    Task(
        "Arrange Drying",
        "Order dehumidifiers and set the drying programme.",
        ("claim facts",),
        ("drying order",),
        {
            "human": "Order the drying contractor, agree the number of dehumidifiers and the date of the first "
            "reading.",
            "code": "Run drying_order: send the room list to the contractor on duty and store the confirmation.",
        },
        (human(0.6, 0.985, 0.05, 14), code(0.4, 0.98, 0.02, 5.0)),
    ),
    Task(
        "Secure Property",
        "Have the roof or the windows made weathertight for the time being.",
        ("claim facts",),
        ("emergency works order",),
        {
            "human": "Send the emergency contractor for a tarpaulin or boarding, and note the cost limit that was "
            "agreed."
        },
        (human(1.0, 0.99, 0.05, 18),),
    ),
    Task(
        "Check Weather Record",
        "Confirm from the weather record that there was a storm at the place and time.",
        ("claim facts", "weather record"),
        ("storm confirmation",),
        {
            "code": "Run weather_lookup for postcode and date of loss; a gust of 55 mph or more within ten miles "
            "confirms a storm."
        },
        (code(1.0, 0.992, 0.02, 3.5),),
    ),
    Task(
        "Obtain Police Report",
        "Get the crime reference and the police report of the theft.",
        ("claim facts",),
        ("police report",),
        {
            "human": "Ask the police station for the report by crime reference, and compare date, place and listed "
            "items with the claim.",
            "code": "Run police_portal with the crime reference and attach the report when it comes.",
        },
        (human(0.6, 0.985, 0.10, 16), code(0.4, 0.98, 0.03, 8.0)),
        answer_hours=72.0,
    ),  # the police answer within days
    Task(
        "Interview Policyholder",
        "An investigator goes through the theft with the policyholder, item by item.",
        ("claim facts", "police report"),
        ("signed statement",),
        {
            "human": "Interview the policyholder about the break-in and each item: when bought, for how much, where "
            "kept, what proves it. "
            "Have the statement signed."
        },
        (human(1.0, 0.99, 0.5, 80),),
    ),
    Task(
        "Value Stolen Items",
        "Put a replacement value on each stolen item.",
        ("item list",),
        ("valuation",),
        {
            "model": "For each item find a current replacement of like kind and quality and its price; mark items "
            "above the single "
            "article limit.",
            "human": "Price each item from current catalogues, apply wear where the policy says so, and mark items "
            "above the single "
            "article limit.",
        },
        (large(0.6, 0.94, 0.15, 4700, 900), human(0.4, 0.955, 0.2, 34)),
    ),
    Task(
        "Estimate Repair Cost",
        "Price the repair from the inspection and the schedule of rates.",
        ("engineer report", "adjuster report"),
        ("repair estimate",),
        {
            "human": "Price each item of the report by the schedule of rates, add labour and materials, and state "
            "the total before and "
            "after excess.",
            "code": "Run rate_card over the items of the report and return the total before and after excess.",
        },
        (human(0.65, 0.94, 0.25, 28), code(0.35, 0.9, 0.05, 7.0)),
    ),
    Task(
        "Review Settlement",
        "A second person goes through the file before anything is promised.",
        ("claim file",),
        ("review note",),
        {
            "human": "Go through coverage, liability, report and figures as if for the first time. Send the file "
            "back where a figure has "
            "no support.",
            "model": "Check each figure of the settlement against the documents of the file. List every figure "
            "without support; answer "
            "PASS only when there is none.",
        },
        (human(0.65, 0.985, 0.5, 24), large(0.35, 0.97, 0.35, 9800, 700)),
    ),
    Task(
        "Approve Settlement",
        "Approve the amount within the authority limits.",
        ("review note", "repair estimate", "valuation"),
        ("approval",),
        {"human": "Compare the amount with your authority limit, approve it or pass it up, and note the reason."},
        (human(1.0, 0.992, 0.05, 7),),
    ),
    Task(
        "Issue Payment",
        "Pay the policyholder or the repairer.",
        ("approval",),
        ("payment",),
        {
            "code": "Run pay_out: pay the approved amount less excess to the checked account and store the payment "
            "reference."
        },
        (code(1.0, 0.995, 0.01, 2.8),),
    ),
    Task(
        "Notify Policyholder",
        "Tell the policyholder the outcome in plain words.",
        ("payment",),
        ("outcome letter",),
        {
            "model": "Write a letter of at most 150 words: what was decided, the amount, when it arrives, and whom "
            "to ask. No jargon.",
            "code": "Run letter_outcome with the standard text for this kind of claim.",
        },
        (small(0.65, 0.985, 0.02, 1500, 260), code(0.35, 0.99, 0.02, 1.8)),
    ),
    Task(
        "Send Satisfaction Survey",
        "Ask the policyholder how the claim went.",
        ("outcome letter",),
        ("survey",),
        {"human": "Telephone the policyholder, ask the six questions of the survey and note the answers."},
        (human(1.0, 0.998, 0.01, 12),),
    ),
    Task(
        "Close Claim",
        "Close the file and release what is left of the reserve.",
        ("payment", "outcome letter"),
        ("closed claim",),
        {"code": "Run close_claim: check that payment and letter are on file, release the reserve and close."},
        (code(1.0, 0.997, 0.01, 1.6),),
    ),
)


INSURANCE_CLAIMS = Industry("insurance claims", 38.0, INSURANCE_TASKS)

_PLACES = ("Ashbourne", "Wexcombe", "Port Ellis", "Tarnley")

MOTOR_KINDS = (
    Kind(
        "Motor glass claim",
        "Driver reports a {damage} {cause} near {place}; the car is a {car} and can still be driven, the "
        "policyholder asks for repair "
        "or replacement of the glass.",
        {
            "damage": ("chipped windscreen", "cracked windscreen", "broken side window"),
            "cause": ("from a stone on the motorway", "found in the morning"),
            "place": _PLACES,
            "car": ("small hatchback", "family estate"),
        },
        "Glass claims are settled from photographs; a fitter of the network does the work and is paid directly.",
        (
            Do("Register Claim"),
            Do("Verify Coverage"),
            Maybe("Request Missing Documents", 0.2),
            Do("Assess Glass Damage"),
            Do("Book Glass Fitter"),
            Check("Review Settlement", "Assess Glass Damage", 0.7),
            Do("Issue Payment"),
            Do("Notify Policyholder"),
            Maybe("Send Satisfaction Survey", 0.15),
            Do("Close Claim"),
        ),
        260,
    ),
    Kind(
        "Motor collision claim",
        "Two vehicles collided {where} near {place}; the policyholder's {car} has damage to the {part}, the other "
        "driver's account "
        "differs, and both want the repair paid.",
        {
            "where": ("at a roundabout", "at a junction", "in a car park"),
            "place": _PLACES,
            "car": ("van", "saloon"),
            "part": ("front wing and door", "rear bumper"),
        },
        "Collision claims need a liability split and an engineer's inspection before a repair is priced.",
        (
            Do("Register Claim"),
            Do("Verify Coverage"),
            Do("Extract Claim Details"),
            Maybe("Request Missing Documents", 0.25),
            Together({"Determine Liability": 0.6, "Check Fraud Indicators": 0.4}),
            Needed("Inspect Vehicle", 0.14, 0.82),
            Do("Estimate Repair Cost"),
            Check("Review Settlement", "Estimate Repair Cost", 0.75),
            Do("Approve Settlement"),
            Do("Issue Payment"),
            Do("Notify Policyholder"),
            Maybe("Send Satisfaction Survey", 0.15),
            Do("Close Claim"),
        ),
        270,
    ),
)

HOME_KINDS = (
    Kind(
        "Water damage claim",
        "Water from a {source} has soaked the {rooms} of a house in {place}; floor and plaster are wet, the "
        "policyholder asks for "
        "drying and repair.",
        {
            "source": ("burst pipe", "leaking washing machine", "blocked shower drain"),
            "rooms": ("kitchen and hall", "bathroom and the ceiling below", "cellar"),
            "place": _PLACES,
        },
        "Water claims start drying at once; the loss adjuster's visit decides cause and extent.",
        (
            Do("Register Claim"),
            Do("Verify Coverage"),
            Do("Extract Claim Details"),
            Maybe("Request Missing Documents", 0.2),
            Together({"Arrange Drying": 0.65, "Check Fraud Indicators": 0.35}),
            Needed("Inspect Property", 0.14, 0.82),
            Do("Estimate Repair Cost"),
            Check("Review Settlement", "Estimate Repair Cost", 0.75),
            Do("Approve Settlement"),
            Do("Issue Payment"),
            Do("Notify Policyholder"),
            Do("Close Claim"),
        ),
        260,
    ),
    Kind(
        "Burglary claim",
        "Thieves broke into a {home} in {place} through the {entry} and took {items}; the police have been told and "
        "the policyholder "
        "sends a list of what is gone.",
        {
            "home": ("terraced house", "ground floor flat", "bungalow"),
            "place": _PLACES,
            "entry": ("back door", "kitchen window"),
            "items": ("jewellery and a laptop", "two bicycles and tools"),
        },
        "Burglary claims rest on the police report and a signed statement; items are valued one by one.",
        (
            Do("Register Claim"),
            Do("Verify Coverage"),
            Do("Extract Claim Details"),
            Together({"Obtain Police Report": 0.55, "Check Fraud Indicators": 0.45}),
            Needed("Interview Policyholder", 0.15, 0.8),
            Do("Value Stolen Items"),
            Check("Review Settlement", "Value Stolen Items", 0.7),
            Do("Approve Settlement"),
            Do("Issue Payment"),
            Do("Notify Policyholder"),
            Maybe("Send Satisfaction Survey", 0.2),
            Do("Close Claim"),
        ),
        250,
    ),
)

HOUSEHOLD_KINDS = (
    Kind(
        "Escape of water claim",
        "Tenant reports escape of water from a {source} on the {floor} of a block in {place}; {effect}, and the "
        "housing association "
        "wants it dried and put right.",
        {
            "source": ("cracked radiator valve", "failed tank overflow", "split supply hose"),
            "floor": ("first floor", "top floor"),
            "place": _PLACES,
            "effect": ("the flat below is dripping", "the carpets are ruined"),
        },
        "Escape of water: dry first, survey in person, price by the schedule of rates, second look before approval.",
        (
            Do("Register Claim"),
            Do("Verify Coverage"),
            Do("Extract Claim Details"),
            Maybe("Request Missing Documents", 0.25),
            Together({"Arrange Drying": 0.5, "Check Fraud Indicators": 0.5}),
            Needed("Inspect Property", 0.13, 0.82),
            Do("Estimate Repair Cost"),
            Check("Review Settlement", "Estimate Repair Cost", 0.7),
            Do("Approve Settlement"),
            Do("Issue Payment"),
            Do("Notify Policyholder"),
            Do("Close Claim"),
        ),
        240,
    ),
    Kind(
        "Storm damage claim",
        "High wind {when} tore {what} off a {home} in {place}; rain is coming in and the owner asks for emergency "
        "works and the repair "
        "of the roof.",
        {
            "when": ("during the night", "on Sunday afternoon"),
            "what": ("ridge tiles", "a length of guttering and slates", "part of a flat roof"),
            "home": ("semi-detached house", "chapel conversion"),
            "place": _PLACES,
        },
        "Storm: the weather record decides whether there was a storm; secure the building, then survey in person.",
        (
            Do("Register Claim"),
            Do("Verify Coverage"),
            Do("Check Weather Record"),
            Maybe("Secure Property", 0.45),
            Needed("Inspect Property", 0.15, 0.8),
            Do("Estimate Repair Cost"),
            Check("Review Settlement", "Estimate Repair Cost", 0.7),
            Do("Approve Settlement"),
            Do("Issue Payment"),
            Do("Notify Policyholder"),
            Do("Close Claim"),
        ),
        240,
    ),
)
