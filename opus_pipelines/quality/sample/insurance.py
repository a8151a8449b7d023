"""Insurance claims: the tasks of motor and home claims, and the six kinds of claim of the sample's two insurers."""

from opus_pipelines.quality.sample.insurance_tasks import TASKS
from opus_pipelines.quality.sample.model import (
    Check,
    Do,
    Industry,
    Kind,
    Maybe,
    Needed,
    Together,
)

INDUSTRY = Industry("insurance claims", 38.0, TASKS)

_PLACES = ("Ashbourne", "Wexcombe", "Port Ellis", "Tarnley")

MOTOR = (
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

HOME = (
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

HOUSEHOLD = (
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
