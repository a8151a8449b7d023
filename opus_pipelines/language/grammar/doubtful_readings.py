"""Finds statements that are not reliable: words of the sentence are lost, or a phrase names no step.

A doubtful statement is not applied, and the person is shown the reason. A person can state a missed rule in
contract.toml, but a rule that is read wrongly would spoil every workflow.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from opus_pipelines.language.grammar.figures import BOUNDED, MONTHS, TIME, TOKEN, bounded, figure_of, readable
from opus_pipelines.language.grammar.modality import (
    MUST,
    NEVER,
    RELATIVE_NOT,
    is_base,
    is_imperative,
    is_participle,
    words_in,
)
from opus_pipelines.language.grammar.phrases import FOR_WHOM, LEADING, without_lead
from opus_pipelines.language.grammar.statements import Condition, ProcedureStatement
from opus_pipelines.language.word_stems import stems, word_set

LONGEST_PHRASE = 6  # content words of a phrase beyond which it is a sentence, not the name of a step
LONGEST_CONDITION = 7  # content words of a condition
MOST_COMMAS = 2  # of a clause
MOST_CONDITIONS = 2  # of one statement
LEAST_CAUSED = 2  # words of "have it done", from which the last tells what is done to something
TOLD = "it tells what is done, it does not say that it must be"

_OF_ONE = ("existence", "absence", "deadline")  # statements about one step
_ASKED = re.compile(  # what is asked, checked or told may be a clause: "check whether the file is complete"
    r"\b(?:ask|check|verify|verifie|confirm|determin|decid|tell|explain|establish|find out|note|record|clarif|inform"
    r"|say|assess|examin"
    r"|make clear|document|see|agree|investigat|review|state|show|look|test|consider|learn|know)\w*(?: [\w']+){0,4}?"
    r" (?:whether|if|why|what|who|which|where|when|how)\b.*$"
)
_BOTH_SIDES = re.compile(r"\bbefore and after\b")
_UNREAD = re.compile(  # words that begin another clause, or that the grammar should have taken away
    r"\b(?:which|whom|whose|whether|if|unless|except|until|although|though|because|whereas|while|when|whenever|where"
    r"|wherever"
    r"|provided (?:that|the|an?)|in case|otherwise|instead|rather|but|before|after|prior to|may|might|could|would"
    r"|will|must|shall"
    r"|should|not|never|nobody|no one|nowhere|either|neither|nor)\b"
    r"|, (?:so|and)\b|, (?:or )?(?:we|you|i|they|he|she|it|the|an?|this|there|nobody)\b"
    r"|\band (?:the|its|their) (?:\w+ )+\w+(?:ed|en)$"
)
_PARTLY = re.compile(  # a phrase that begins or ends in the middle of what is meant
    r"^(?:as|than|and|or|so|because|just|also|but|of|that|which|who|was|were|be|been|by|upon|after|before|prior|if"
    r"|apart|regardless"
    r"|even|unlike|except|otherwise|instead|\d+|in (?:that|this|such))\b"
    r"|\b(?:give|do|have|take|use|need|say|get) (?:one|so|that|this|these|those)$"
    r"|\b(?:does|did|for|of|with|by|to|from|at|and|or|than|within|as|be|is|are|the|an)$"
)
_SEVERAL = re.compile(  # more than one clause in the phrase of one step
    r"^(?:is|are|to|from|for|with|within|in|on|at|during|under|twice)\b|, (?!.*\b(?:and|or)\b)"
    r"|\band (?:to|must|shall|should|not|has to|have to)\b|^(?:(?:special|particular|due|great) )?(?:care|attention"
    r"|caution|regard)\b"
)
_FOR_SOME = re.compile(
    r"^(?!(?:ask|look|wait|check)\b).*\bfor (?!(?:all|every|each|any|the|its|his|her|their|this|at)\b"
    r"|\d)(?:[\w-]+ )?[\w-]+s$"
)
_FOR_ALL = re.compile(r"\bfor (?:all|both|every|each)\b")  # such words are in no phrase of a statement
_TIME_OF_DAY = re.compile(
    r"^(?:the )?(?:\d{1,2}(?::\d\d)? ?(?:[ap]\.?m\b|o'clock)|noon|midnight|midday|\d{1,2}:\d\d)"
    r"|^(?:the )?(?:\w+ )?(?:day|week|month|year|quarter|season|spring|summer|autumn|winter|morning|evening|night"
    r"|weekend)s?$"
)
_TIME_BESIDE = re.compile(r"\b(?:on|at|by) the (?:\w+ )?(?:day|week|month|year|morning|evening|night|moment|time)$")
_PARTICLES = (["out"], ["back"], ["up"], ["off"], ["in"], ["on"], ["away"])
_VAGUE = word_set(
    "necessary needed required possible applicable appropriate available desired so not any it there in doubt "
    "unsure case relevant reasonable feasible practicable else this that one happens occurs yes no questions "
    "question problem problems"
)
_SAYS = re.compile(rf"{MUST.pattern}|{NEVER.pattern}|\b(?:is|are|needs?|requires?)\b")
_CLAUSE_WORD = re.compile(r"\b(?:if|when(?:ever)?|where|unless|except|case)\b")
_LED = re.compile(
    r"(?:if|for|from|above|over|below|under|where|when(?:ever)?|in case|should|with|up to|at least|more than)\b"
)
_REPORTED = re.compile(
    r"(?!(?:have|get|keep|leave) )[a-z]+ [a-z]+ [a-z]+ed (?:for|on|by|in|at|since)\b"
)  # "crack mapping scheduled for"
_RELATIVE = re.compile(r"\b(?:that|who|which)\b.*\b(?:is|are)\b")
_IS_SO = re.compile(r"\b(?:is|are) (?:up to|at least|at most|over|under|above|below|more than|less than|kept|held)\b")
_UNREAD_IN_CONDITION = re.compile(r"\b(?:must|shall|should|will|would|may|might|could)\b|⟦|, ")
_FIGURE_IN_WORDS = re.compile(
    r"\b[A-Z]{3} [\d,.]+|\b\d[\d.,]* (?:working )?(?:second|minute|hour|day|week|month|year|percent)"
)
_NARROWS = re.compile(  # "instruments touched by ...", "complaints from readers": some of them, or all?
    r"^(?:(?!received|made|reported|submitted|placed|sent)[a-z]+(?:ed|en|own|ght|ept|ent|one|ade) (?:by|to|of|with"
    r"|from|in|on|after"
    r"|before)|from|in|on|under|inside)\b"
)
_OF_SOME = re.compile(  # "a ticket of seriousness 1": some of them
    r"\bof (?:type|kind|class|category|priority|severity|seriousness|urgency|level|grade|rank|risk|status) "
    r"(?!(?:and|or|that|with|of|for|in|by|to|is|must|be)\b)[\w']+"
)
_OWN_WISH = re.compile(r"^you (?:need|want|like|wish|prefer|feel|have)\b")
_STATE_OF_MIND = re.compile(
    r"\s*(?:(?:\w+ly|also|always|already) )?(?:have|due|feel|say|think|know|want|like|believe|hope|expect|seem|mean"
    r"|deemed|understood"
    r"|affect|prejudice|constitute|include|familiar|aware|able|entitled|liable|exempt|eligible|valid|responsible"
    r"|subject|free|so|such|too"
    r"|very)\b"
)
_STATES = frozenset(stems("begin last consist contain belong depend exist expire differ vary strive"))
_HANGING = re.compile(
    r"\b(?:if|unless|except(?! for the)|provided (?:that|the|an?)|in case|as long as|only|in the event)\b"
)
_TIMED_CONDITION = re.compile(rf"\b(?:if|unless|when|where|only)\b[^,]*{TIME}[^,]*$")
_MEASURES = re.compile(r"^(?!.*\b(?:for|if|when|where|in case of|except|unless|be|exceed)\b)[^,]*\b(?:of|have|has)\s*$")
_NARROWED_BY = re.compile(r"\b(?:for|if|when|where|in case of|to|from|on|with|by|of|,)")
_OR_ELSE = re.compile(r"[^,]*\bor (?:the|an?|it|if|for|when|is|are)\b")
_THEM = re.compile(r"\b(?:it|them|him|her)\b")
_AUXILIARY = r"(?:is|are|was|were|be|been|has|have|had|do|does|must|shall|should|may|can|could|will)"
_THINGS_OF_BEFORE = re.compile(  # words that stand for things of an earlier sentence
    rf"\b(?:both|either|neither|all|each|any|every one|none)(?: (?:two|three|four|five))?(?= {_AUXILIARY}\b)"
    rf"|\b(?:these|those|the (?:two|three|others?|latter|former))(?= {_AUXILIARY}\b)"
    r"|\b(?:both|either|neither|all|each|any|every one|one) of (?:them|these|those|the (?:two|three|four))\b"
    r"(?! (?!is\b|has\b|was\b|does\b)[a-z]+s\b)"
    r"|(?<=[a-z] )(?:both|each|all|either)(?=$|,| (?:before|after|first|until|and then)\b)"
    r"|\b(?:the two|the latter|the former)(?=$|,)|\bboth(?= (?![a-z]+s$)[a-z]+$)"
)
_HOW = re.compile(
    rf"\b(?:for|with|by|using) (?:at least|at most|up to|a minimum of|a maximum of|no more than) (?:{TIME}"
    rf"|(?!⟦)\S+ \w+)"
)


def doubtful(statements: Sequence[ProcedureStatement], clause: str) -> list[ProcedureStatement]:
    """Return the statements of a clause, each with the reason why it is not reliable, where there is one."""
    lost_words = _figures_lost(statements, clause) or _words_lost(statements, clause)
    return [
        replace(
            statement,
            doubt=next(filter(None, _reasons(statement, clause)), lost_words) or _of_construction(statement, clause),
        )
        for statement in statements
    ]


def _of_construction(statement: ProcedureStatement, clause: str) -> str:
    """Return the reason where the construction proved unreliable on texts that the grammar was not tuned on.

    The measurements are in tests/intakes/requirements/procedures/README.md.
    """
    if statement.kind == "deadline" and _RELATIVE.search(statement.a):
        return f"whether the time tells which cases are meant by {statement.a!r} is not sure"
    if match := _OF_SOME.search(statement.a):
        return f"whether only some cases are meant by {match[0]!r} is not sure"
    if statement.kind == "existence" and (not statement.strong or _REPORTED.match(clause)):
        return TOLD
    if clause.count(", ") > MOST_COMMAS:
        return "the sentence has too many parts"
    if any(c.is_scope for c in statement.conditions) and not LEADING.match(clause) and not FOR_WHOM.match(clause):
        return "whether only some cases are meant is not sure"
    if any(c.op and not c.text for c in statement.conditions) and statement.kind in _OF_ONE and _is_behind(clause):
        return "whether the figure tells which cases are meant is not sure"
    return ""


def _reasons(statement: ProcedureStatement, clause: str) -> Iterator[str]:
    yield statement.doubt
    if match := _THINGS_OF_BEFORE.search(clause):
        yield f"what {match[0]!r} stands for was not understood"
    if (
        statement.kind == "existence"
        and not statement.conditions
        and _FOR_SOME.search(statement.a)
        and not _FOR_ALL.search(clause)
    ):
        yield f"whom {statement.a!r} concerns was not understood"
    if (
        statement.kind == "absence"
        and len(stems(statement.a)) == 1
        and "stop" in words_in(clause)
        and not _THEM.search(statement.a)
    ):
        yield "what is to stop is said in one word only"
    if statement.kind == "limit" and _IS_SO.search(clause) and not MUST.search(clause):
        yield TOLD
    if statement.kind == "existence" and statement.verb in _STATES:
        yield f"{statement.a!r} tells how things are, not what is done"
    for text in filter(None, (statement.a, statement.b, *statement.options)):
        yield _of_phrase(text, statement.kind in _OF_ONE)
    if any(unit in MONTHS for unit in (statement.unit, *(c.unit for c in statement.conditions))):
        yield "it has a date"
    if len(statement.conditions) > MOST_CONDITIONS:
        yield "it has more conditions than can be read for sure"
    for condition in statement.conditions:
        yield _of_condition(condition, statement.kind) if condition.text else ""
    if statement.kind in ("existence", "absence") and not _is_done(clause):
        yield "it tells how something has to be, not what is done"


def _is_behind(clause: str) -> bool:
    """Return whether a bound on a bare number follows the verb, outside any clause of its own.

    Example: "doors must be opened above 3 metres".
    """
    bound, verb = BOUNDED.search(clause), _SAYS.search(clause)
    if bound is None or re.search(TOKEN, bound[0]) or _CLAUSE_WORD.search(clause) or _LED.match(clause):
        return False
    return verb is None or verb.start() < bound.start()


def _of_phrase(text: str, of_one: bool) -> str:
    """Return why a phrase does not name a step, "" where it does.

    `of_one`: the statement is about this step alone, not about the order of two.
    """
    words = words_in(text)
    if match := _UNREAD.search(_BOTH_SIDES.sub(" ", _ASKED.sub(" ", text))):
        return f"the part from {match[0].strip(' ,')!r} on in {text!r} was not understood"
    if of_one and _SEVERAL.search(text):
        return f"{text!r} is more than one clause"
    if set(words) <= _VAGUE:
        return f"{text!r} names no step"
    if of_one and words[1:] in ([], *_PARTICLES) and is_participle(words[0]) and not is_base(words[0]):
        return f"what is {text!r} is not said"
    if not of_one and _TIME_BESIDE.search(text):
        return f"{text!r} ends in a time: when, not what comes first"
    if _TIME_OF_DAY.match(text):
        return f"{text!r} is a time of day, not a step"
    if _PARTLY.search(text):
        return f"{text!r} is only a part of what is meant"
    if sum(not stem[0].isdigit() for stem in stems(text)) > LONGEST_PHRASE:
        return f"{text!r} is too long for the name of a step"
    return ""


def _of_condition(condition: Condition, kind: str) -> str:
    text = condition.text
    if _OWN_WISH.match(text):
        return f"{text!r} is for the reader to decide"
    if condition.is_scope and kind != "absence" and _NARROWS.match(text):
        return f"whether only some are meant by {text!r} is not sure"
    if not set(words_in(text.casefold())) - _VAGUE or not stems(text):
        return f"the condition {text!r} does not say when it is met"
    unread = _UNREAD_IN_CONDITION.search(text) or (not condition.op and _FIGURE_IN_WORDS.search(text))
    return f"the condition {text!r} was not understood" if unread or len(stems(text)) > LONGEST_CONDITION else ""


def _is_done(clause: str) -> bool:
    """Return whether the clause obliges or forbids an action: a verb that is no state, or a participle after "be"."""
    if is_imperative(clause) or not (match := NEVER.search(clause) or MUST.search(clause)):
        return True
    rest = clause[match.end() :]
    words = words_in(rest)
    if words[:1] == ["have"] and len(words) > LEAST_CAUSED and is_participle(words[-1]):
        return True  # "must have the indicators checked"
    following = next((w for w in words if not w.endswith("ly")), "")
    is_passive = is_participle(following) or following.endswith("ed")
    return not _STATE_OF_MIND.match(rest) and (not match[0].rstrip().endswith(" be") or is_passive)


def _figures_lost(statements: Sequence[ProcedureStatement], clause: str) -> str:
    """Return the reason where a bound or a time of the clause is in no statement, or perhaps in the wrong one."""
    clause = _HOW.sub(" ", without_lead(clause))
    must, never = MUST.search(clause), NEVER.search(clause)
    kept = {c.amount for statement in statements for c in statement.conditions} | {
        statement.amount for statement in statements
    }
    forbidden = any(statement.kind == "absence" for statement in statements)
    for bound in BOUNDED.finditer(clause):
        if bounded(bound).figure.amount not in kept:
            return f"{readable(bound[0])!r} was not understood"
        if _OR_ELSE.match(clause[bound.end() :]):
            return f"what stands beside {readable(bound[0])!r} was not understood"
        measured = must and must.end() <= bound.start() and _MEASURES.search(clause[must.end() : bound.start()])
        limited = (
            forbidden
            and never
            and never.end() <= bound.start()
            and not _NARROWED_BY.search(clause[never.end() : bound.start()])
        )
        if measured or limited:
            return f"whether {readable(bound[0])!r} is a condition is not sure"
    if any(statement.kind == "deadline" for statement in statements):
        return _times_lost(statements, clause, kept)
    texts = [c.text for statement in statements for c in statement.conditions] + [
        t for statement in statements for t in (statement.a, statement.b)
    ]
    lost_times = (
        t[0]
        for t in re.finditer(TIME, clause)
        if figure_of(t[0]).amount not in kept and readable(t[0]) not in " ".join(texts)
    )
    if any(statement.conditions for statement in statements) and (time := next(lost_times, None)):
        return f"{readable(time)!r} was not understood"
    return ""


def _times_lost(statements: Sequence[ProcedureStatement], clause: str, kept: set[float | None]) -> str:
    times = list(re.finditer(TIME, clause))
    if any(figure_of(time[0]).amount not in kept for time in times):
        return "it has more than one time"
    must = MUST.search(clause)
    if must and not clause.startswith("within") and all(time.end() <= must.start() for time in times):
        return "whether the time tells which cases are meant is not sure"
    if any(statement.conditions for statement in statements) and _TIMED_CONDITION.search(clause):
        return "whether the time belongs to the condition is not sure"
    return ""


def _words_lost(statements: Sequence[ProcedureStatement], clause: str) -> str:
    """Return the reason where words that change the meaning of the clause are in no statement."""
    if is_imperative(clause) and any(
        s.kind == "existence" and len(stems(s.a)) == 1 and not _THEM.search(s.a) for s in statements
    ):
        return "what is to be done is said in one word only"
    if RELATIVE_NOT.search(clause):
        return "whom it concerns was not understood"
    read = any(
        statement.conditions or statement.kind in ("precedence", "response", "succession") for statement in statements
    )
    if not read and (hanging := _HANGING.search(_ASKED.sub(" ", clause))):
        return f"the part from {hanging[0]!r} on was not understood"
    return ""
