"""Reads an English sentence, or a row of a table, as the statements in it.

A sentence is first cut into clauses in lower case, with figures as tokens; numbering, labels, quotations and asides are
removed.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from opus_pipelines.language.grammar import phrases
from opus_pipelines.language.grammar.doubtful_readings import doubtful
from opus_pipelines.language.grammar.figures import BOUNDED, TOKEN, Figure, readable, with_tokens
from opus_pipelines.language.grammar.modality import (
    ENSURE,
    FORGET,
    MUST,
    NEVER,
    NOBODY,
    NOT_ASKED,
    PERMISSION,
    PROHIBITED,
    REQUIRED,
    REQUIRES,
    SKIPPED,
    SUBJECT,
    coordinated,
    forbids,
    is_base,
    is_finite,
    is_imperative,
    is_participle,
    may_be_third_person,
    obliged_verb,
    obliges,
    phrase,
    tells_only,
    words_in,
)
from opus_pipelines.language.grammar.statements import Condition, ProcedureStatement
from opus_pipelines.language.word_stems import stems, word_set

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
_IN_ALL_CASES = re.compile(r"^always (?=[a-z])")
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
    if (order := _IN_ALL_CASES.sub("", clause)) != clause and is_imperative(order):
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


_EVENT_WORDS = (
    "before",
    "prior to",
    "after",
    "once",
    "as soon as",
    "upon",
    "following",
    "on receipt of",
    "when",
    "whenever",
)
_SCOPES = ("for", "in case of", "in the case of", "except for", "in the event of")
_DROPPED = ("in", "at", "with", "from", "by", "without", "during", "within")
_NARROWING = ("in", "during", "with", "without")
_ALWAYS = re.compile(  # it narrows nothing: "in the first step", "in all cases", "with immediate effect"
    r"(?:all|any|every|each|order|addition|general|principle|future|parallel|detail|practice|writing|cooperation|close"
    r"|the (?:first|second|third|next|last"
    r"|final|morning|afternoon|evening|end|beginning|following|course|process)|a (?:first|second|third|next|last|final)"
    r"|immediate|effect|regard|respect)\b"
)
_COORDINATED = re.compile(
    r",? (?:and|but) (?=(?:the|an?|its|their|his|her|every|all|no|it|they|we|you|nobody|this)\b)|, (?=(?:the|it"
    r"|they) )|, (?:and|but) (?=(?:[a-z-]+ ){1,3}(?:(?:must|shall) (?:not )?be|(?:must|shall|may) not [a-z]+)\b)"
)
_ALL = re.compile(r"^(?:each|every|all|any|we|you|i|the|it)\b")
_SOMEONE = re.compile(r"(?:some|any)(?:one|body|thing)\b|help\b|(?:more )?time\b")
_EITHER = re.compile(r"^(?P<head>.*?)\beither (?P<a>.+?) or (?P<b>.+)$")
_OR = re.compile(r"^(?P<a>.+?),? or (?P<b>.+)$")
_OR_THING = re.compile(r"^[a-z]+ (?:them |him |her |the customer |the caller )?(?P<a>an? [^,]+?) or (?P<b>an? [^,]+)$")
_IT_IS = re.compile(
    r"^it (?:is|shall be) (?:strictly |expressly )?(?:forbidden|prohibited|not (?:allowed|permitted)) to (?P<what>.+)$"
)
_NOT_ALLOWED_TO = re.compile(r"\b(?:is|are|be) (?:not|no longer) (?:allowed|permitted) to (?P<what>.+)$")
_NOT_DONE = re.compile(r"^(?P<a>[^,]+?) (?:is|are) (?:not|never) (?P<v>[a-z]+)\b(?P<rest>.*)$")
_NO_NEED = re.compile(r"^(?:nothing|none) (?:must|has to|needs? to) ")
_NO_THING = re.compile(r"^no (?P<a>[\w -]+)$")
_NO_ON = re.compile(r"^no (?P<a>[\w -]+?) (?P<c>(?:on|during|in|at|outside|after) .+)$")
_STATE = re.compile(r"(?:is|are|will) (?:not|never)(?: ever)?")
_RELATIVE = re.compile(r"\b(?:what|which|that|who|whose)\b[^,]{0,20}$")
_STATIVE = re.compile(
    r"\b(?:costs?|begins?|starts?|ends?|lasts?|takes up|contains?|consists?|applies|apply|means?|remains?"
    r"|depends?|exists?)\b"
)
_NO_TIME = word_set(
    "covered included needed required intended meant known considered affected limited expected entitled "
    "allowed permitted obliged located situated based related involved interested concerned"
)


def statements_of(text: str, shape: str = "prose") -> tuple[ProcedureStatement, ...]:
    """Return the statements of a sentence in the order of its clauses; none where it obliges and orders nothing.

    `shape` is that of `intakes.requirements.rules`. In items, a noun with a participle ("laptop ordered") is a step
    to do.
    """
    statements = [statement for clause in clauses_of(text) for statement in doubtful(_read(clause, shape), clause)]
    return tuple(
        dict.fromkeys(
            statement
            for statement in statements
            if statement.kind in ("deadline", "choice") or not phrases.is_thin(statement)
        )
    )


def _read(text: str, shape: str, conditions: tuple[Condition, ...] = ()) -> list[ProcedureStatement]:
    if text.endswith("?") or not text:
        return []
    leads = (
        phrases.LEADING,
        phrases.FOR_WHOM,
        phrases.WITHOUT_COMMA,
        phrases.TOLD_BEHIND,
    )
    lead = next(filter(None, (pattern.match(text) for pattern in leads)), None)
    if lead and not (lead["word"] == "from" and phrases.duration_limit(text)):
        return _led(lead["word"], lead["what"], lead["rest"], shape, conditions)
    parts = _COORDINATED.split(text)
    if (
        len(parts) > 1
        and all(_stands_alone(p) for p in parts)
        and not re.search(r"\b(?:subsequently|afterwards|thereafter)\b", text)
    ):
        return [statement for part in parts for statement in _read(part, shape, conditions)]
    return _clause(text, shape, conditions)


def _stands_alone(text: str) -> bool:
    words = words_in(text)
    ends_in_verb = len(words) > 2 and words[0] in ("the", "a", "an", "its", "their") and may_be_third_person(words[-1])
    return is_finite(text) or is_imperative(text) or ends_in_verb


def _led(word: str, what: str, rest: str, shape: str, conditions: tuple[Condition, ...]) -> list[ProcedureStatement]:
    """Read a clause with a condition, an event or circumstances before its comma."""
    if word in ("unless", "until", "without") and forbids(rest):
        return [ProcedureStatement("precedence", phrase(what), phrase(NOBODY.sub("", rest)))]
    if word == "on" and not re.match(
        r"(?:\w+ )?(?:the )?(?:approval|receipt|arrival|completion|delivery|request|departure|rejection"
        r"|acceptance)\b",
        what,
    ):
        return _read(rest, shape, conditions)
    if word in ("when", "whenever") and BOUNDED.search(what):
        word = "if"
    if word in (*_EVENT_WORDS, "on"):
        statements = _read(rest, shape, conditions)
        return phrases.with_leading_clause(
            word, what, statements, "" if tells_only(rest) or PERMISSION.search(rest) else rest, conditions
        )
    if word == "within" and MUST.search(rest):
        return _read(f"{rest} within {what}", shape, conditions)
    if word == "until" or (word in _NARROWING and not _ALWAYS.match(what)):
        unsure = f"whether it holds {word} {what!r} only is not sure"
        return [replace(s, doubt=unsure) for s in _read(rest, shape, conditions)]
    if word in _DROPPED:
        return _read(rest, shape, conditions)
    if word == "while" and not _binds(rest) and not is_imperative(rest):
        return []  # it tells what happens at the same time
    condition = phrases.condition_of(what, word in ("unless", "except for"), word in _SCOPES)
    return _read(rest, shape, (*conditions, condition))


def _clause(text: str, shape: str, conditions: tuple[Condition, ...]) -> list[ProcedureStatement]:
    """Read a clause that nothing before it governs."""
    text = FORGET.sub("", text)
    if SKIPPED.search(text) and forbids(text):
        return [ProcedureStatement("existence", phrase(SKIPPED.sub(" ", text)), conditions=conditions)]
    if tells_only(text):
        return []
    bare, given = phrases.trailing(text)
    if bound := phrases.duration_limit(bare) or phrases.limit(bare):
        conditions = (*conditions, *given)
        more = (
            [ProcedureStatement("existence", bound.a)]
            if bound.op == ">=" and bound.unit == "count" and MUST.search(text)
            else []
        )
        return [replace(s, conditions=conditions) for s in [bound, *more]]
    text = phrases.without_lead(text)
    due = phrases.deadline(text)
    if due and not (PERMISSION.search(text) and not MUST.search(text)):
        return _due(*due, shape, conditions)
    before_conditions, numeric = _numeric(text)
    if (ordered := phrases.order(before_conditions, (*conditions, *numeric))) and not (
        PERMISSION.search(text) and not _binds(text)
    ):
        return ordered
    main, trailing = phrases.trailing(text)
    conditions = (*conditions, *trailing)
    if tells_only(main) or not main:
        return []
    if trailing and (due := phrases.deadline(main)):
        return _due(*due, shape, conditions)
    main, numeric = _numeric(main)
    conditions = (*conditions, *numeric)
    permits = PERMISSION.search(main) and not _binds(main)
    return (None if permits else phrases.order(main, conditions)) or _plain(main, shape, conditions)


def _binds(text: str) -> bool:
    return forbids(text) or bool(MUST.search(text)) or " only" in f" {text}"


def _numeric(text: str) -> tuple[str, tuple[Condition, ...]]:
    hanging = re.search(r"\b(?:if|unless|except|when|where)\b", text)
    return phrases.attached(text) if BOUNDED.search(text) and not hanging else (text, ())


def _due(text: str, due: Figure, since: str, shape: str, conditions: tuple[Condition, ...]) -> list[ProcedureStatement]:
    """Read a clause that says until when its step must be done, counted from `since`."""
    text, trailing = phrases.trailing(text)
    narrowed: tuple[Condition, ...] = ()
    text, numeric = _numeric(text)
    if MUST.search(text):
        text, narrowed = phrases.of_subject(text)
    conditions = (*conditions, *trailing, *numeric, *narrowed)
    a = "" if phrases.is_whole_work(text) else phrase(text)
    if not a and not phrases.is_whole_work(text):
        return []
    steps = [s for s in _plain(text, shape, conditions) if s.kind == "existence"] if a else []
    a = steps[0].a if len(steps) > 1 else a
    statement = ProcedureStatement(
        "deadline",
        a,
        amount=due.amount,
        unit=due.unit,
        calendar=due.calendar,
        conditions=conditions,
        since=readable(since),
    )
    return [statement, *steps[1:]]


def _plain(text: str, shape: str, conditions: tuple[Condition, ...]) -> list[ProcedureStatement]:
    """Read existence, absence and choice."""
    if match := _IT_IS.match(text):
        return [_absence(match["what"], conditions)]
    if match := _NOT_ALLOWED_TO.search(text):
        return [_absence(match["what"], conditions)]
    if _NO_NEED.match(text) or NOT_ASKED.search(text):
        return []
    nobody = NOBODY.match(text) and (MUST.search(text) or re.search(r"\b(?:may|can|is|are)\b", text))
    if PROHIBITED.search(text) or _bans(text) or nobody:
        return _forbidden(text, conditions)
    if (
        (match := _NOT_DONE.match(text))
        and not _RELATIVE.search(match["a"])
        and is_participle(match["v"])
        and match["v"] not in _NO_TIME
    ):
        return [_absence(text.replace(" not ", " "), conditions)]
    if (match := _NO_ON.match(text)) and not is_finite(text):
        return [
            ProcedureStatement("absence", match["a"], conditions=(*conditions, Condition(match["c"], is_scope=True)))
        ]
    if shape == "item" and (match := _NO_THING.match(text)) and not is_finite(text):
        return [ProcedureStatement("absence", match["a"], conditions=conditions)]
    if PERMISSION.search(text):
        return []
    if chosen := _choice(text, conditions):
        return chosen
    if ENSURE.match(text):
        return _ensured(ENSURE.sub("", text), shape, conditions)
    if MUST.search(text) and obliged_verb(text):
        text, narrowed = phrases.of_subject(text)
        return [_existence(p, (*conditions, *narrowed)) for p in coordinated(text)]
    if REQUIRED.search(text):
        return [_existence(REQUIRED.sub(" ", text), conditions)]
    if (needed := phrases.count_needed(text)) and not is_imperative(text):
        return [replace(needed, conditions=conditions)]
    if (match := REQUIRES.match(text)) and not is_imperative(text) and words_in(match["what"]):
        if re.search(r"\b(?:first|prior|beforehand|in advance|previous)\b", text):
            a = phrase(re.sub(r"\b(?:prior|previous|beforehand)\b", "", match["a"]))
            return [ProcedureStatement("precedence", a, phrase(match["what"]), conditions=conditions)]
        _, narrowed = phrases.of_subject(text)
        conditions = (*conditions, *narrowed)
        is_clear = conditions or (_ALL.match(match["what"]) and not _SOMEONE.match(match["a"]))
        unclear = "" if is_clear else f"whether every case has {phrase(match['what'])!r} is not said"
        return [ProcedureStatement("existence", phrase(match["a"]), conditions=conditions, doubt=unclear)]
    if is_imperative(text):
        return [_existence(p, conditions) for p in coordinated(text)]
    if shape == "item" and _is_state(text):
        either = re.split(r",? or ", text)
        if len(either) > 1 and all(map(_is_state, either)):
            return [ProcedureStatement("choice", options=tuple(map(phrase, either)), conditions=conditions)]
        parts = re.split(r",? and ", text)
        return [_existence(p, conditions) for p in (parts if all(map(_is_state, parts)) else [text])]
    if conditions and _tells_a_step(text):
        return [_existence(p, conditions, strong=False) for p in coordinated(text)]
    return []


def _ensured(text: str, shape: str, conditions: tuple[Condition, ...]) -> list[ProcedureStatement]:
    """Read what must be ensured: that something is done, or is not done."""
    if forbids(text):
        return _read(text, shape, conditions)
    done = re.search(r"\b(?:is|are|be|been|has been|have been) (?:\w+ly )?(?P<v>[a-z]+)", text)
    return _read(f"must {text}", shape, conditions) if done and is_participle(done["v"]) else []


def _bans(text: str) -> bool:
    """Return whether the clause forbids an action.

    "is not ..." describes a state, and "what cannot wait" is no clause of its own.
    """
    match = NEVER.search(text)
    return bool(match and not _STATE.fullmatch(match[0].strip()) and not _RELATIVE.search(text[: match.start()]))


def _tells_a_step(text: str) -> bool:
    """Return whether a plain statement describes an action: "the order is blocked", "the manager decides"."""
    if _STATIVE.search(text):
        return False
    passive = re.search(r"\b(?:is|are) (?:\w+ly )?(?P<v>[a-z]+)\b", text)
    if passive:
        return is_participle(passive["v"])
    return bool(SUBJECT.match(text)) or any(may_be_third_person(w) for w in words_in(text)[1:4])


def _is_state(text: str) -> bool:
    """Return whether the text is a noun with a participle, as in a list of things to do: "laptop ordered"."""
    words = words_in(text)
    return len(words) > 1 and not is_finite(text) and not is_base(words[0]) and any(is_participle(w) for w in words[1:])


def _forbidden(text: str, conditions: tuple[Condition, ...]) -> list[ProcedureStatement]:
    if PROHIBITED.search(text):
        match = PROHIBITED.search(text)
        rest = text[match.end() :] if match else ""
        if rest.startswith(" to "):
            return [_absence(rest[4:], conditions)]
    text, narrowed = phrases.of_subject(text)
    bare, more = phrases.circumstances(text)
    conditions = (*conditions, *narrowed)
    return [replace(_absence(bare, (*conditions, *more)), verb=obliged_verb(text))]


def _absence(text: str, conditions: tuple[Condition, ...]) -> ProcedureStatement:
    return ProcedureStatement("absence", phrase(NOBODY.sub("", text)), conditions=conditions, verb=obliged_verb(text))


def _existence(text: str, conditions: tuple[Condition, ...], strong: bool = True) -> ProcedureStatement:
    return ProcedureStatement("existence", phrase(text), conditions=conditions, verb=obliged_verb(text), strong=strong)


def _choice(text: str, conditions: tuple[Condition, ...]) -> list[ProcedureStatement]:
    match = _EITHER.match(text)
    if match and (MUST.search(text) or obliges(text.replace("either ", "", 1)) or is_finite(text)):
        return [
            ProcedureStatement(
                "choice", options=(phrase(match["a"]), phrase(match["b"])), conditions=conditions, exclusive=True
            )
        ]
    if (things := _OR_THING.match(text)) and is_imperative(text):
        return [ProcedureStatement("choice", options=(phrase(things["a"]), phrase(things["b"])), conditions=conditions)]
    match = _OR.match(text)
    if match and (is_imperative(text) or MUST.search(text)) and " either" not in text:
        words = words_in(match["b"])
        passive = bool(re.search(r"\bbe\b", match["a"]))
        if words and len(words) > (0 if passive else 1) and (is_participle(words[0]) if passive else is_base(words[0])):
            return [
                ProcedureStatement("choice", options=(phrase(match["a"]), phrase(match["b"])), conditions=conditions)
            ]
    return []


_OBLIGES = re.compile(
    r"^(?:mandatory|required|obligatory|compulsory|always|yes|must|every time|for every \w+|after every \w+)$", re.I
)
_PERMITS = re.compile(
    r"^(?:optional|voluntary|at (?:\w+ )?discretion|if available|for information|if desired|recommended)$",
    re.I,
)
_FORBIDS = re.compile(r"^(?:(?:is )?(?:prohibited|forbidden|not allowed|not permitted|never)\b)(?P<rest>.*)$", re.I)
_SAME_DAY = re.compile(r"^(?:the )?same day$|^immediately$|^at once$", re.I)
_DUE = re.compile(
    r"^(?:within |max(?:imum|\.)? |at most |up to |not? later than )?(?:an? |\w+[-.,\d]* )(?:working |business "
    r"|calendar )?(?:minute"
    r"|hour|day|week|month)s?(?: at most| maximum)?(?: (?:of|after|from) .+)?$",
    re.I,
)
_ORDER = re.compile(
    r"^(?:only after|only with|only upon|only once|only when|after|before|not before|not until|must follow|once"
    r"|prior to)\b",
    re.I,
)
_CONDITION = re.compile(
    r"^(?:by .+?, )?(?P<c>(?:(?:only|required|mandatory)\s+)?(?:if|for|when|above|over|below|under|where"
    r"|in case of|with)\b.*|[^,]+ (?:above|over|more than|less than|below|exceeding|from) .*\d.*)$",
    re.I,
)
_LIMIT = re.compile(
    r"^(?:at least|at most|max\.?|maximum|min\.?|minimum|up to|no more than)\s.*(?:\d|\b(?:one|two|three|four|five"
    r"|six|ten)\b)",
    re.I,
)
_CHOICE = re.compile(r"\b(?:one of (?:the )?(?:two|both|them)|either|never both)\b", re.I)
_ACTIVITIES = ("activity", "activities", "task", "action", "what", "work step", "process step", "step")
_EMPTY = re.compile(r"^(?:[-–—.]+|n/?a|none|not applicable)$", re.I)
_WHOLE = re.compile(r"\b(?:whole|total|entire|overall|end-to-end|all steps)\b|^process$|^from .+ to ", re.I)


def activity_column(text: str) -> int | None:
    """Return the index of the activity column, where the row is the head of a table: "No. | Activity | Rule"."""
    names = [name.strip().casefold() for name in _split(text)]
    return next((names.index(known) for known in _ACTIVITIES if known in names), None)


def statements_of_row(text: str, column: int | None = None) -> tuple[ProcedureStatement, ...]:
    """Return the statements of a row: `column: value; ...` with column names, `cell | cell` without.

    `column`: the index of the activity column, where the table's head tells it.
    """
    if column is not None and len(parts := _split(text)) > column and words_in(parts[column].casefold()):
        cells = [parts[column], *(p for n, p in enumerate(parts) if n != column)]
        cells = [_named(c) for c in cells if c and not _EMPTY.match(c)]
        return tuple(dict.fromkeys(_of_step(cells[0], cells[1:])))
    cells = _cells(text)
    texts = [cell for cell in cells if len(cell.split()) >= 5 and not _rule_like(cell) and _step_of([cell]) is None]
    long = [statement for cell in texts for statement in statements_of(cell)]
    place = _step_of(cells)
    if place is None:
        return tuple(long)
    rest = [c for n, c in enumerate(cells) if n != place]
    return tuple(dict.fromkeys([*_of_step(cells[place], rest), *long]))


def _cells(text: str) -> list[str]:
    values = map(_named, _split(text))
    return [v for v in values if v and not _EMPTY.match(v)]


def _split(text: str) -> list[str]:
    return [part.strip() for part in (text.split("|") if "|" in text else re.split(r";|\t", text))]


def _named(cell: str) -> str:
    """Return a cell without the name of its column."""
    name, _, value = cell.partition(": ")
    return value.strip() if value and len(name.split()) <= 4 else cell


def _step_of(cells: list[str]) -> int | None:
    """Return the index of the cell that names the step, else None.

    It is the first that begins with a verb, ends in a participle, or is about the whole work.
    """
    order = sorted(range(len(cells)), key=lambda n: (len(words_in(cells[n].casefold())) < 2, n))
    for n in order:
        cell, words = cells[n], words_in(cells[n].casefold())
        if _rule_like(cell) or not words or len(words) > 8:
            continue
        if _WHOLE.search(cell) or (is_base(words[0]) and (len(words) > 1 or cell[:1].isupper()) and n < 3):
            return n
        if len(words) > 1 and is_participle(words[-1]):
            return n
    return None


def _rule_like(cell: str) -> bool:
    return any(p.match(cell) for p in (_OBLIGES, _PERMITS, _FORBIDS, _DUE, _ORDER, _LIMIT, _CONDITION))


def _of_step(step: str, rest: list[str]) -> list[ProcedureStatement]:
    """Return the statements of a step: each other cell is read as the end of a sentence with it."""
    if any(_PERMITS.match(c) for c in rest) and not any(_OBLIGES.match(c) or _ORDER.match(c) for c in rest):
        return []
    if _WHOLE.search(step):
        due = next((c for c in rest if _DUE.match(c)), None)
        return list(statements_of(f"The whole work must be done within {_bare(due)}")) if due else []
    statements: list[ProcedureStatement] = []
    conditions = [c for c in (_condition(c) for c in rest) if c]
    condition = f" if {conditions[0]}" if conditions else ""
    for cell in (part.strip() for c in rest for part in c.split(", ")):
        if _FORBIDS.match(cell) and not _CHOICE.search(" ".join(rest)):
            without = re.match(r"never without (?P<a>.+)$", cell, re.I)
            ending = f" without {without['a']}" if without else _forbidden_for(cell)
            statements += statements_of(f"Do not {_lower(step)}{ending}")
        elif _ORDER.match(cell):
            statements += statements_of(_ordered(step, cell))
        elif _DUE.match(cell) and not _SAME_DAY.match(cell):
            statements += statements_of(f"{_must(step)} within {_bare(cell)}{condition}")
        elif _LIMIT.match(cell):
            noun = " ".join(words_in(step.casefold())[1:]) or step
            statements += statements_of(f"The {noun} must be {re.sub('(?i)^max[a-z.]*', 'at most', cell)}")
    if _CHOICE.search(" ".join(rest)):
        return list(statements_of(f"You must either {_lower(step)}"))
    forbidden = any(s.kind == "absence" for s in statements)
    always = any(_OBLIGES.match(part.strip()) for c in rest for part in c.split(", "))
    obliged = conditions or always or any(s.kind == "limit" for s in statements)
    if obliged and not forbidden and not any(s.kind in ("precedence", "response") for s in statements):
        statements += [s for s in statements_of(f"{_must(step)}{condition}") if s not in statements]
    return statements


def _condition(cell: str) -> str:
    """Return the condition of a cell, in the words of an if-clause."""
    match = _CONDITION.match(cell)
    if not match or _OBLIGES.match(cell) or _ORDER.match(cell) or cell.casefold() in ("on return", "on receipt"):
        return ""
    condition = re.sub(r"^(?:only|required|mandatory)\s+", "", match["c"], flags=re.I)
    return re.sub(r"^(?:if|when|where|for)\s+", "", condition, flags=re.I)


def _forbidden_for(cell: str) -> str:
    match = re.search(r"\bfor (?P<x>.+)$", cell, re.I)
    return f" in case of {match['x']}" if match else ""


def _ordered(step: str, cell: str) -> str:
    if re.match(r"must follow", cell, re.I):
        return f"{step} {cell}"
    if re.match(r"after (?:every|each)\b", cell, re.I):
        return f"{cell}, you must {_lower(step)}"
    if re.match(r"(?:after|once)\b", cell, re.I):
        return f"{_must(step)} only {cell}"
    if re.match(r"not (?:before|until)", cell, re.I):
        return f"Do not {_lower(step)} {cell[4:]}"
    return f"{_must(step)} {cell}"


def _must(step: str) -> str:
    return f"You must {_lower(step)}"


def _lower(step: str) -> str:
    return step[:1].lower() + step[1:]


def _bare(cell: str) -> str:
    return re.sub(
        r"^(?:within|max(?:imum|\.)?|at most|up to|not? later than)\s+|\s+(?:at most|maximum)$", "", cell, flags=re.I
    )
