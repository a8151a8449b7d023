"""The words and patterns by which clauses begin and end: connectives, determiners, markers of loops and conditions."""

import re

ADVERBS = frozenset(
    (
        "then also finally next lastly afterwards afterward thereafter subsequently just please later again additionally now "
        "first firstly secondly thirdly immediately automatically simply simultaneously instead only further "
        "furthermore too once kindly after that"
    ).split()
)
COORDINATORS = frozenset(["and", "then", "&", "but"])
QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "`": "'", "\u00a0": " "})
TOKEN = re.compile(
    r"\"[^\"]*\"|(?<![\w'])'[^']*'(?!\w)|\d+(?:[.,]\d+)+|\w+(?:[-'._@/]\w+)*'?|==|!=|<=|>=|[<>=%$]|[,.;:!?()&\n]"
)
ENDS = frozenset(".;!?\n")
DETERMINERS = frozenset(
    (
        "a an the all another any every each my our your their its his her this that these those one two "
        "three new some both existing"
    ).split()
)
PREPOSITIONS = frozenset(
    (
        "to from in on onto of for at by with within into about using via through under as inside across between "
        "against regarding"
    ).split()
)
AUXILIARIES = frozenset(
    (
        "is are was were be has have had do does did isn't aren't doesn't don't hasn't haven't can cannot "
        "contains equals exists includes starts ends belongs matches"
    ).split()
)
# Words that are more often a noun: a verb only before a determiner or a pronoun ("email the owner").
NOUNS = frozenset(
    (
        "message email mail task file book order comment issue access branch label note tag case lead contact group "
        "project product board card channel chat team user form sign work time trigger invoice account asset test call "
        "plan report record release request set lock check-in"
    ).split()
)
# Words that are more often a verb where no determiner stands before them.
VERBS = frozenset(
    (
        "share list search display schedule copy update post review change archive store check process upload download "
        "reply export import log transfer"
    ).split()
)
POLITE = re.compile(
    r"^(?:(?:please|kindly|hi|hello|hey)\b[, ]*|(?:can|could|would|will) you (?:please )?|(?:i|we)(?:'d| would)?(?: also)? "
    r"(?:want|need|like|wish|have)(?: you)? to |(?:it|the flow|the system) (?:should|must) (?:also )?|i'm going to |let's |let us |make sure (?:to |that you )?|be sure to |"
    r"help me (?:to )?|(?:the|this) (?:flow|workflow|process|automation) (?:should|must|will|needs to) |"
    r"build (?:me )?a (?:flow|workflow|process) (?:that|to|which) (?:will )?)+",
    re.IGNORECASE,
)
CONDITION_WORDS = frozenset(["if", "when", "whenever", "unless", "provided"])
LOOPS = re.compile(
    r"(?:(?:for|in|within|from|on|inside|of|to|with|over) )?(?:each|every)(?: one)?(?: of)?\b|for all(?: of)?\b|"
    r"(?:to|for|of) all(?: the)?(?= (?:\S+ ){1,3}(?:whose|who|that|which)\b)|for (?:only )?(?:the ones|those)\b|"
    r"(?:loop|iterate|go) (?:over|through|across)(?: all| each| every)?(?: of)?\b"
)
ELSES = re.compile(r"(?:or )?(?:else|otherwise)\b(?!,? if\b)|if not\b(?= ?,|$| then| [a-z]+ (?:an?|the|it)\b)|in (?:any|all) other cases?\b|"
                    r"in the other case\b|if (?:it|this|that) (?:does|is|has)(?: not|n't)\b(?= ?,)")  # fmt: skip
ELSE_IFS = re.compile(r"or if\b|(?:or )?(?:else|otherwise),? if\b|elif\b|elseif\b")
WHILES = re.compile(r"(?:while|as long as|until)\b")

_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun|week)day|day|morning|night|evening|week|month|quarter|year)"
# When a flow begins by the clock; it is no step and no loop.
SCHEDULE = re.compile(
    rf"(?:at (?:\d[\w:.]*|noon|midnight) )?(?:on )?(?:(?:every|each)(?: other)? (?:(?:\d+|two|three|four|six) )?(?:{_DAY}|hour|minute)s?|nightly|daily|"
    rf"weekly|monthly|hourly|once an? {_DAY}|{_DAY}s\b)(?: (?:at|around|by|on) (?:day )?\d[\w:.]*(?: [ap]m)?|(?: at) (?:noon|midnight)| (?:on )?{_DAY}s?)*(?= |$)"
)
NOT_BEFORE = DETERMINERS | frozenset(
    ["to", "be", "is", "are", "no", "not", "been", "will", "should", "of", "in", "with"]
)
# What has happened to a record when a flow begins: "when a lead is created".
HAPPENED = frozenset(
    "created added received submitted opened updated changed signed hired registered posted uploaded placed published "
    "merged filed raised logged sent made won lost deleted removed reported".split()
)
COMPARING = frozenset("equals contains exceeds includes matches starts ends belongs means stays remains".split())
TOGETHER = re.compile(
    r"\b(?:(?:do )?(?:(?:the )?(?:following|these|this|two|three|four) )?(?:things |steps )?(?:(?:should )?happen )?)?"
    r"(?:in parallel|at the same time|simultaneously|concurrently|side by side)\b(?: [,:])?",
    re.IGNORECASE,
)
AFTERWARDS = re.compile(
    r"[\s,;]*(?:join\b[\s,]*)?(?:(?:and )?then|when|once|after|afterwards|finally)\b", re.IGNORECASE
)
BREAK = re.compile(r"(?:[\s,:]|\b(?:and|then|but)(?=\s|$))*$", re.IGNORECASE)
