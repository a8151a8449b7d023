"""The order of two steps, in its wordings: before, only after, not until, then, followed by, ..."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from opus_pipelines.language.grammar.figures import MONTHS, readable
from opus_pipelines.language.grammar.modality import MUST, NOBODY, PROHIBITED, coordinated, forbids, obliges, phrase
from opus_pipelines.language.grammar.statements import Condition, Kind, ProcedureStatement
from opus_pipelines.language.grammar.verbs import is_finite, is_participle, words_in

_ONLY = re.compile(
    r"^(?P<b>.*?)\bonly\b(?P<mid>.*?)\b(?P<w>after|once|when|if|upon|with|following|on(?= (?:presentation|production"
    r"|submission|receipt|proof|approval|condition)\b))\b\s+(?P<a>.+)$"
)
_NOT_BEFORE = re.compile(r"^(?P<b>.+?),?\s*(?:but )?not (?:before|until|prior to)\s+(?P<a>.+)$")
_UNTIL = re.compile(r"^(?P<b>.+?),?\s+\b(?P<w>before|until|till|unless|without|prior to)\b\s+(?P<a>.+)$")
_BEFORE = re.compile(r"^(?P<a>.+?),?\s+\b(?:before|prior to|ahead of)\b\s+(?P<b>.+)$")
_AFTER = re.compile(
    r"^(?P<b>.+?),?\s+\b(?P<w>after|once|as soon as|upon|following)\b\s+(?P<a>.+?)(?P<not>,? (?:and )?(?:not"
    r"|never) (?:earlier|before))?$"
)
_FOLLOWED = re.compile(
    r"^(?P<a>.+?),?\s+(?:(?P<m>must be|shall be|has to be|have to be|should be|is always|are always|is"
    r"|are) )?(?:directly |immediately )?followed by\s+(?P<b>.+)$"
)
_PRECEDED = re.compile(
    r"^(?P<b>.+?)\s+(?:must|shall|should|is|are|has|have)(?: to)?(?: always)?(?: be)? preceded by\s+(?P<a>.+)$"
)
_SUBJECT_TO = re.compile(
    r"^(?P<b>.+?) (?:is|are|be|shall be|must be) (?:always )?(?:subject to|conditional (?:up)?on|contingent (?:up)?on) "
    r"(?!.*\b(?:change|availability|tax|vat|terms|conditions|rules)\b)(?P<a>.+)$"
)
_PRECEDES = re.compile(r"^(?P<a>.+?)\s+(?:(?:must|shall|should|always) )?(?:precedes?|comes? before)\s+(?P<b>.+)$")
_INVERTED = re.compile(
    r"(?:^|,? and |, )only (?:after|when|once|if|upon) (?P<a>.+?) (?P<m>is|are|may|can|does|shall|will"
    r"|must) (?P<b>(?:an?|the|we|you|any"
    r"|it|they) .+)$"
)
_FOLLOWS = re.compile(r"^(?P<b>.+?)\s+(?:must|shall|should|has to|have to|always)?\s*(?:follow|follows)\s+(?P<a>.+)$")
_CONDITION_OF = re.compile(
    r"^(?P<a>.+?)\s+(?:is|are) (?:an? )?(?:prerequisite|precondition|condition|requirement)s? (?:for"
    r"|of)\s+(?P<b>.+)$"
)
_THEN = re.compile(
    r"^(?P<a>.+?)(?:[,;]? and then|, then|[,;] afterwards,?|[,;] subsequently,?|[,;] thereafter,?|[,;] after that,?"
    r"|; then|; next,?"
    r"|[,;]? and afterwards|, after which|,? and only then"
    r"|,? before then|, whereupon|, next,?)\s+(?P<b>.+)$"
)
_SUBSEQUENT = re.compile(r"^(?P<a>.+?),? and (?P<b>(?:[\w'-]+ ){0,5}(?:subsequently|afterwards|then|thereafter) .+)$")
_WITHHELD = re.compile(r"^(?P<b>.+?) (?P<h>withheld|held back|suspended|postponed|put on hold) until (?P<a>.+)$")
_FIRST_LAST = re.compile(r"^(?P<b>[^,]+), (?P<a>[^,]+) first$")
_ONLY_SUBJECT = re.compile(
    r"only (?:(?!after|once|when|if|upon|with|following|then|on\b)[\w'-]+ ){1,6}?(?:may|can|must|shall|is|are)\b"
)
_OF_A_NOUN = re.compile(r"\b(?:for|of|from) (?:an? |the |any )?[\w-]+$")
_THERE_IS_NO = re.compile(r"^there (?:is|are|shall be|must be|may be|can be|will be) no ")
_NO_NO = re.compile(r"no (?P<a>[^,]+), no (?P<b>[^,]+)")
_OUTSIDE = re.compile(
    r"\b(?:before and after|as before|as soon as possible|after all|long before|day before|once (?:an?|per|every)\b"
    r"|once ⟦)"
)
_EVENT = re.compile(r"\b(?:has|have|had|is|are|was|were|gets?) (?:not )?(?:been |already )?(?:\w+ly )?(?P<v>[a-z]+)")

_HANGING = re.compile(r"\b(?:if|unless|except|when|where|while|provided)\b")
_CLOCK = re.compile(
    rf"(?:the )?(?:\d|(?:{'|'.join(MONTHS)}) ?\d|noon|midnight|midday"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|end of|close of|⟦)"
)
_FORCE = re.compile(r"\b(?:must|shall|should|may|can|has to|have to)\b")

_DENIED = re.compile(r"\b(?:not|never)\b(?! (?:before|until|earlier|later))")

Conditions = tuple[Condition, ...]


def is_event(text: str) -> bool:
    """Return whether the clause is about an action that was done ("has been approved"), not about a state."""
    match = _EVENT.search(text)
    if match and is_participle(match["v"]):
        return True
    return bool(re.search(r"\bhas [a-z]+(?:ed|en|nt|ld|ne)\b", text)) or not is_finite(text)


def order(text: str, conditions: Conditions = ()) -> list[ProcedureStatement] | None:
    """Return the statements of order of a clause; None where it has none."""
    if _OUTSIDE.search(text) or _ONLY_SUBJECT.match(text):
        return None
    if (denied := PROHIBITED.search(text)) and not text[denied.end() :]:
        text = f"never {text[: denied.start()].strip()}"
    text = _THERE_IS_NO.sub("no ", text)
    if match := _NO_NO.fullmatch(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if (match := _INVERTED.search(text)) and (match["m"] not in ("is", "are") or not is_finite(match["a"])):
        return [_precedes(match["a"], match["b"], True, conditions)]
    match = _ONLY.match(text)
    if (
        match
        and (match["w"] not in ("if", "when") or is_event(match["a"]))
        and not re.search(r"⟦[^⟧]*\|[mp]⟧", match["a"])
    ):
        return [_precedes(match["a"], match["b"] + match["mid"], True, conditions)]
    if match := _NOT_BEFORE.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if (match := _UNTIL.match(text)) and forbids(match["b"]):
        if match["w"] == "without" and _OF_A_NOUN.search(match["b"]):
            return None  # "for a car without a number plate"
        if match["w"] in ("unless",) and not is_event(match["a"]):
            return None
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _WITHHELD.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _FIRST_LAST.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _CONDITION_OF.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _SUBJECT_TO.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _PRECEDES.match(text):
        return [_precedes(match["a"], match["b"], bool(MUST.search(text)), conditions)]
    if match := _PRECEDED.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    return _in_sequence(text, conditions) or _before_or_after(text, conditions)


def _in_sequence(text: str, conditions: Conditions) -> list[ProcedureStatement] | None:
    if match := _FOLLOWED.match(text):
        if not match["m"]:
            return [_statement("succession", match["a"], match["b"], True, conditions)]
        return [_statement("response", match["a"], match["b"], True, conditions)]
    if match := _THEN.match(text):
        if " only then" in text[: match.start("b")]:
            left = re.sub(r"^.*, ", "", match["a"])
            return [_precedes(left, match["b"], True, conditions)]
        steps = [re.sub(r"\bfirst\b", "", s) for s in [*_chain(match["a"]), match["b"]]]
        strong = obliges(text) or bool(MUST.search(text))
        return [_statement("succession", a, b, strong, conditions) for a, b in pairwise(steps)]
    if match := _SUBSEQUENT.match(text):
        return [_statement("succession", re.sub(r"\bfirst\b", "", match["a"]), match["b"], True, conditions)]
    if (match := _FOLLOWS.match(text)) and not re.search(r"\bfollow up\b", text):
        return [_statement("response", match["a"], match["b"], bool(MUST.search(text)), conditions)]
    return None


def _chain(text: str) -> list[str]:
    """Return the steps of a list such as "send the draft, wait for the approval" before "and then book"."""
    parts = [p.strip() for p in text.split(", ")]
    return parts if len(parts) > 1 and all(obliges(p) for p in parts) else [text]


def _before_or_after(text: str, conditions: Conditions) -> list[ProcedureStatement] | None:
    if (match := _BEFORE.match(text)) and not forbids(match["a"]) and _may_join(match["a"], match["b"]):
        return [
            _precedes(_nearest(a), match["b"], bool(obliges(match["a"])), conditions) for a in coordinated(match["a"])
        ]
    if (
        (match := _AFTER.match(text))
        and _may_join(match["b"], match["a"])
        and not re.search(r"(?:not|look|soon) $", f"{match['b']} ")
    ):
        if match["b"].endswith("⟧"):  # a span of time after an event is no step after another
            return None
        if match["not"]:
            return [_precedes(match["a"], match["b"], True, conditions)]
        if forbids(match["b"]):
            return [
                ProcedureStatement(
                    "absence", phrase(match["b"]), conditions=(*conditions, Condition(readable(f"after {match['a']}")))
                )
            ]
        return [
            _statement("response", match["a"], b, bool(obliges(match["b"])), conditions)
            for b in coordinated(match["b"])
        ]
    return None


def _may_join(left: str, right: str) -> bool:
    """Return whether a word of time joins two clauses.

    It does not where it is in a condition, or in a subject ("what came after ... must ...").
    """
    inside = _HANGING.search(left) or (_FORCE.search(right) and not _FORCE.search(left))
    return not inside and not _CLOCK.match(right)


def _nearest(text: str) -> str:
    """Return, of several clauses, the one next to the word that joins."""
    parts = re.split(r",? and (?=(?:the|an?|its|their)\b)", text)
    return parts[-1] if len(parts) > 1 and all(is_finite(p) for p in parts) else text


def with_leading_clause(
    word: str, what: str, rest: Sequence[ProcedureStatement], main: str, conditions: Conditions
) -> list[ProcedureStatement]:
    """Return the orders between `what` and the statements of the main clause.

    The clause begins with "after `what`, ..." or "before `what`, ...".
    """
    orders: list[ProcedureStatement] = []
    if _DENIED.search(what) and word not in ("before", "prior to"):  # what is not done is no step that another follows
        return [replace(statement, conditions=(*statement.conditions, Condition(readable(what)))) for statement in rest]
    for statement in rest:
        if word in ("before", "prior to"):
            orders.append(
                ProcedureStatement(
                    "precedence", statement.a, phrase(what), strong=statement.strong, conditions=statement.conditions
                )
            )
        elif statement.kind == "existence":
            orders.append(
                ProcedureStatement(
                    "response", phrase(what), statement.a, strong=statement.strong, conditions=statement.conditions
                )
            )
        elif statement.kind in ("absence", "limit", "choice"):
            orders.append(
                ProcedureStatement(
                    **{**vars(statement), "conditions": (*statement.conditions, Condition(readable(f"{word} {what}")))}
                )
            )
        elif statement.kind == "deadline" and word in ("when", "whenever"):
            orders.append(replace(statement, doubt=f"the time begins {word} {readable(what)!r}"))
        elif statement.kind == "deadline" and not statement.since:
            orders.append(replace(statement, since=readable(what)))
        else:
            orders += (
                [statement, ProcedureStatement("response", phrase(what), statement.a, strong=statement.strong)]
                if statement.kind == "succession"
                else [statement]
            )
    if not orders and word not in ("before", "prior to") and is_finite(main) and not forbids(main):
        orders = [_statement("response", what, b, False, conditions) for b in coordinated(main)]
    if not orders and word in ("before", "prior to") and is_finite(main) and not forbids(main):
        orders = [_precedes(main, what, False, conditions)]
    return orders


def _precedes(a: str, b: str, strong: bool, conditions: Conditions) -> ProcedureStatement:
    return _statement("precedence", a, b, strong, conditions)


def _statement(kind: Kind, a: str, b: str, strong: bool, conditions: Conditions) -> ProcedureStatement:
    left = _DENIED.search(a) or (kind != "precedence" and _DENIED.search(b))
    doubt = f"whether {readable(left.string)!r} is to happen or not is not sure" if left else ""
    return ProcedureStatement(
        kind, phrase(NOBODY.sub("", a)), phrase(NOBODY.sub("", b)), strong=strong, conditions=conditions, doubt=doubt
    )


def is_thin(statement: ProcedureStatement) -> bool:
    """Return whether a phrase of the statement has no words."""
    return not words_in(statement.a) or (
        statement.kind in ("precedence", "response", "succession") and not words_in(statement.b)
    )
