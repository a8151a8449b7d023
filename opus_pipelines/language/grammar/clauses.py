"""Prepares a sentence for the grammar: clauses in lower case, with figures as tokens.

Numbering, labels, quotations and asides are removed.
"""

import re
from collections.abc import Iterator

from opus_pipelines.language.grammar.figures import BOUNDED, TOKEN, with_tokens
from opus_pipelines.language.grammar.modality import is_finite, is_imperative, is_participle, words_in
from opus_pipelines.language.word_stems import stems

LEAST_CLAUSE = 4  # words of what stands before a colon, from which it may be a clause
QUOTED = re.compile(r'"[^"]*"|“[^”]*”|«[^»]*»|(?<!\w)\'[^\']{4,}\'(?!\w)')
_NUMBERING = re.compile(
    r"^\s*(?:\d{1,2}(?=\s+(?-i:[A-Z][a-z]))|\[[ xX✓]?\]|☐|[-*+•–▪◦]|§+\s*[\d.]+|\(?\d+(?:\.\d+)*[.):]|\d+(?:\.\d+)+"
    r"|(?:clause"
    r"|article|art\.|section|step|rule"
    r"|no\.?)\s+\d+[.):]?)\s+",
    re.I,
)
_SILENT = re.compile(  # labels of what is no rule
    r"^(?:(?:agent |pro |good )?(?:tip|hint|note|remark|example|background|observation|finding|root cause|cause"
    r"|risk(?: rating)?"
    r"|rating|effect"
    r"|management response|response|legend|abbreviations?|sources?|definitions?|say|nice to have|optional|recommended"
    r"|reason|purpose"
    r"|scope|aim"
    r"|statistics|voluntary|recommendation)(?: \d+)?)\s*:|^\((?:optional|voluntary|recommended)\)",
    re.I,
)
_VOICE = re.compile(
    r"^(?:requirements?|rules?|important|reminder|action|actions|policy|please note|warning|caution|attention"
    r"|answer)(?: \d+)?\s*:\s*",
    re.I,
)
_HEADED = re.compile(r"^(?P<head>[^:.;⟦]{2,70}(?:⟦[^⟧]*⟧[^:.;]{0,30})?):\s+(?P<rest>\S.*)$")
_THINGS = re.compile(r"(?:\w+ ){0,2}\w+s$")  # "gas appliances: close the valve"
_NARROWED = re.compile(
    r"^(?!.*\b(?:must|shall|should|is|are)\b)\w+ (?:with|without|who|whose|that|from|under|abroad)\b"
)
_HOW_OFTEN = re.compile(  # how often a step is done changes nothing of what is done, where it is no bound
    rf"(?<!most)(?<!least)(?<!than)(?<!to) (?:once|twice|(?:two|three|four|five|six|\d+) times)"
    rf" (?:(?:every|each|per) (?:day|week|month|quarter|year|shift)|{TOKEN})(?=[.!]?$)",
    re.I,
)
_ASIDE = re.compile(r"\s*\(([^()]*)\)")
_BOUND_FIRST = re.compile(rf"^(?P<head>[^,.;:–—-]{{2,40}}{TOKEN}[^,.;:–—-]{{0,20}}?)\s[–—-]\s")
_KEPT_ASIDE = re.compile(
    r"^(?:must|shall|has to|have to|needs? to|only|not|never|before|after|within|max|at most|unless|except|if"
    r"|should)\b",
    re.I,
)
_REPLY = re.compile(
    r"^(?:(?:yes|no|sure|of course|correct|right|indeed|well)(?=[,:])|and|but|so|also|now|then|finally|meanwhile"
    r"|in parallel|next|however|therefore"
    r"|in addition|additionally|furthermore|moreover|from now on|going forward|in future|effective \w+"
    r"|starting (?:next |on )?\w+"
    r"|as of [^,]+|and one more thing|in general|by default|thus|hence|as a rule|please|(?:make"
    r"|be) sure to|remember to|take care to|ensure to)\b(?:[,:]\s*|\s+)"
)
_ALWAYS = re.compile(r"^always (?=[a-z])")
_SHORT = (
    ("’", "'"),
    ("can't", "can not"),
    ("cannot", "can not"),
    ("won't", "will not"),
    ("n't", " not"),
    ("'ll", " will"),
    ("'ve", " have"),
    ("'re", " are"),
)
_CONCESSION = re.compile(
    r",? even (?:if|when|where|while|before|after|though)\b[^,]*|, (?:whoever|whatever|whichever|no matter)\b[^,]*"
)
_AND_WHICH = re.compile(
    r", which (?:is|are|was|were|takes?|can|may|usually|often|normally|has|have|also)\b[^,]*(?:,|$)"
)
_ASKED = re.compile(r"^(?:q(?:uestion)?\s*[:.]\s*)?(?P<q>[^?]*)\?\s*(?:a(?:nswer)?\s*[:.]\s*)(?P<a>.*)$", re.I | re.S)
_HOW_MANY = re.compile(
    r"^how many (?P<what>.+?) (?P<verb>do|does|may|can|are|is|must|should|will)\b(?P<rest>.*)$", re.I
)
_MAY_I = re.compile(r"^(?:may|can|could|do|does|will) (?P<what>.+)$", re.I)
_WHAT_WHEN = re.compile(r"^what .*?\b(?P<when>(?:when|if|after|once)\b.*)$", re.I)
_WHEN_MAY = re.compile(r"^when (?:may|can|could|do|does|is|are|will|must) (?P<what>.+)$", re.I)
_COUNT_ONLY = re.compile(r"^(?:(?:at most|no more than|up to|a maximum of) [\w-]+|[\w-]+ at (?:the )?most)[.!]?$", re.I)


def clauses_of(text: str) -> Iterator[str]:
    """Yield the clauses of a sentence that stand by themselves, prepared for the grammar."""
    bare = _unnumbered(" ".join(text.split()))
    if asked := _ASKED.match(bare):
        bare = _answered(asked["q"].strip(), asked["a"].strip())
    bare = _unnumbered(QUOTED.sub(" ", bare))
    if _SILENT.match(bare):
        return
    bare = _ASIDE.sub(lambda match: f" {match[1]}" if _KEPT_ASIDE.match(match[1]) else "", _VOICE.sub("", bare))
    yield from _parts(with_tokens(bare))


def _parts(text: str) -> Iterator[str]:
    text = _HOW_OFTEN.sub("", text)
    text = _BOUND_FIRST.sub(r"\g<head>: ", text)
    for part in re.split(r";\s+(?!(?:subsequently|afterwards|then|thereafter|after that|next)\b)|\s[–—-]\s", text):
        headed = _HEADED.match(part.strip())
        if not headed:
            yield from _ready(part)
        elif re.match(r"(?:for|if|in case of|when)\b", headed["head"], re.I):
            yield from _ready(f"{headed['head']}, {headed['rest']}")
        elif _says_for_what(headed["head"], headed["rest"]):
            yield from _ready(f"for {headed['head']}, {headed['rest']}")
        elif _says_when(headed["head"], headed["rest"]):
            yield from _ready(f"if {headed['head']}, {headed['rest']}")
        elif len(headed["head"].split()) < LEAST_CLAUSE:
            yield from _ready(headed["rest"])
        else:
            yield from _ready(headed["head"])
            yield from _ready(headed["rest"])


def _says_for_what(head: str, rest: str) -> bool:
    """Return whether the text before a colon limits what the rest applies to.

    Examples: "menus over USD 80: ...", "gas appliances: close the valve".
    """
    bounds = BOUNDED.search(head.casefold()) or _NARROWED.search(head)
    return bool(bounds or (_THINGS.match(head) and is_imperative(rest.casefold())))


def _says_when(head: str, rest: str) -> bool:
    """Return whether the text before a colon, which is no clause, is a condition of the order after it.

    Example: "no scan within a day: open an investigation".
    """
    clause = head.casefold()
    words = words_in(clause)
    fragment = len(words) > 1 and (len(words) >= LEAST_CLAUSE or words[0] in ("no", "not") or is_participle(words[-1]))
    return fragment and not is_finite(clause) and not is_imperative(clause) and is_imperative(rest.casefold())


def _ready(text: str) -> Iterator[str]:
    clause = text.casefold()
    for old, new in _SHORT:
        clause = clause.replace(old, new)
    clause = " ".join(_AND_WHICH.sub("", _CONCESSION.sub("", clause)).strip(" .!,").split())
    while match := _REPLY.match(clause):
        clause = clause[match.end() :]
    if (order := _ALWAYS.sub("", clause)) != clause and is_imperative(order):
        clause = order
    if len(clause.split()) > 1:
        yield clause


def _unnumbered(text: str) -> str:
    while match := _NUMBERING.match(text):
        text = text[match.end() :]
    return text.strip()


def _answered(question: str, answer: str) -> str:
    """Return an answer together with the words of the question that it leaves out."""
    if (match := _HOW_MANY.match(question)) and _COUNT_ONLY.match(answer):
        counted = re.sub(
            r" at (?:the )?most|[.!]|^(?:at most|no more than|up to|a maximum of) ", "", answer, flags=re.I
        )
        return f"{match['what']} {match['rest']} must be at most {counted}"
    if (match := _WHEN_MAY.match(question)) and re.match(r"only\b|not before\b", answer, re.I):
        return f"{match['what']} {answer}"
    if (match := _MAY_I.match(question)) and re.match(r"only (?:after|once|when|if|with)\b|not before\b", answer, re.I):
        return f"{match['what']} {answer}"
    led = re.match(r"(?:if|when|after|once|yes|no|it depends)\b", answer, re.I)
    if (
        (match := _WHAT_WHEN.match(question))
        and not led
        and not set(stems(match["when"].casefold())) <= set(stems(answer.casefold()))
    ):
        return f"{match['when']}, {answer}"
    return answer
