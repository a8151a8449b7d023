"""Which of two steps comes first, in the ways of saying so: before, only after, not until, then, followed by, ..."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from opus_pipelines.requirements.grammar.figures import MONTHS, readable
from opus_pipelines.requirements.grammar.modality import MUST, NOBODY, PROHIBITED, coordinated, forbids, obliges, phrase
from opus_pipelines.requirements.grammar.verbs import is_finite, is_participle, words_in
from opus_pipelines.requirements.statements import Condition, Kind, ProcedureStatement

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
    r"(?:^|,? and |, )only (?:after|when|once|if|upon) (?P<a>.+?) (?P<m>is|are|may|can|does|shall|will|must) (?P<b>(?:an?|the|we|you|any"
    r"|it|they) .+)$"
)
_FOLLOWS = re.compile(r"^(?P<b>.+?)\s+(?:must|shall|should|has to|have to|always)?\s*(?:follow|follows)\s+(?P<a>.+)$")
_CONDITION_OF = re.compile(
    r"^(?P<a>.+?)\s+(?:is|are) (?:an? )?(?:prerequisite|precondition|condition|requirement)s? (?:for"
    r"|of)\s+(?P<b>.+)$"
)
_THEN = re.compile(
    r"^(?P<a>.+?)(?:[,;]? and then|, then|[,;] afterwards,?|[,;] subsequently,?|[,;] thereafter,?|[,;] after that,?|; then|; next,?"
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
    """The clause tells that something was done ("has been approved", "the customer has confirmed"), not merely how
    things are.
    """
    found = _EVENT.search(text)
    if found and is_participle(found["v"]):
        return True
    return bool(re.search(r"\bhas [a-z]+(?:ed|en|nt|ld|ne)\b", text)) or not is_finite(text)


def order(text: str, conditions: Conditions = ()) -> list[ProcedureStatement] | None:
    """The statements of order of a clause; None where it states none."""
    if _OUTSIDE.search(text) or _ONLY_SUBJECT.match(text):
        return None
    if (denied := PROHIBITED.search(text)) and not text[denied.end() :]:
        text = f"never {text[: denied.start()].strip()}"
    text = _THERE_IS_NO.sub("no ", text)
    if found := _NO_NO.fullmatch(text):
        return [_precedes(found["a"], found["b"], True, conditions)]
    if (found := _INVERTED.search(text)) and (found["m"] not in ("is", "are") or not is_finite(found["a"])):
        return [_precedes(found["a"], found["b"], True, conditions)]
    found = _ONLY.match(text)
    if (
        found
        and (found["w"] not in ("if", "when") or is_event(found["a"]))
        and not re.search(r"⟦[^⟧]*\|[mp]⟧", found["a"])
    ):
        return [_precedes(found["a"], found["b"] + found["mid"], True, conditions)]
    if found := _NOT_BEFORE.match(text):
        return [_precedes(found["a"], found["b"], True, conditions)]
    if (found := _UNTIL.match(text)) and forbids(found["b"]):
        if found["w"] == "without" and _OF_A_NOUN.search(found["b"]):
            return None  # "for a car without a number plate"
        if found["w"] in ("unless",) and not is_event(found["a"]):
            return None
        return [_precedes(found["a"], found["b"], True, conditions)]
    if found := _WITHHELD.match(text):
        return [_precedes(found["a"], found["b"], True, conditions)]
    if found := _FIRST_LAST.match(text):
        return [_precedes(found["a"], found["b"], True, conditions)]
    if found := _CONDITION_OF.match(text):
        return [_precedes(found["a"], found["b"], True, conditions)]
    if found := _SUBJECT_TO.match(text):
        return [_precedes(found["a"], found["b"], True, conditions)]
    if found := _PRECEDES.match(text):
        return [_precedes(found["a"], found["b"], bool(MUST.search(text)), conditions)]
    if found := _PRECEDED.match(text):
        return [_precedes(found["a"], found["b"], True, conditions)]
    return _in_sequence(text, conditions) or _beside(text, conditions)


def _in_sequence(text: str, conditions: Conditions) -> list[ProcedureStatement] | None:
    if found := _FOLLOWED.match(text):
        if not found["m"]:
            return [_made("succession", found["a"], found["b"], True, conditions)]
        return [_made("response", found["a"], found["b"], True, conditions)]
    if found := _THEN.match(text):
        if " only then" in text[: found.start("b")]:
            left = re.sub(r"^.*, ", "", found["a"])
            return [_precedes(left, found["b"], True, conditions)]
        steps = [re.sub(r"\bfirst\b", "", s) for s in [*_chain(found["a"]), found["b"]]]
        strong = obliges(text) or bool(MUST.search(text))
        return [_made("succession", a, b, strong, conditions) for a, b in pairwise(steps)]
    if found := _SUBSEQUENT.match(text):
        return [_made("succession", re.sub(r"\bfirst\b", "", found["a"]), found["b"], True, conditions)]
    if (found := _FOLLOWS.match(text)) and not re.search(r"\bfollow up\b", text):
        return [_made("response", found["a"], found["b"], bool(MUST.search(text)), conditions)]
    return None


def _chain(text: str) -> list[str]:
    """ "send the draft, wait for the approval" of "..., and then book": each a step."""
    parts = [p.strip() for p in text.split(", ")]
    return parts if len(parts) > 1 and all(obliges(p) for p in parts) else [text]


def _beside(text: str, conditions: Conditions) -> list[ProcedureStatement] | None:
    if (found := _BEFORE.match(text)) and not forbids(found["a"]) and _may_join(found["a"], found["b"]):
        return [
            _precedes(_nearest(a), found["b"], bool(obliges(found["a"])), conditions) for a in coordinated(found["a"])
        ]
    if (
        (found := _AFTER.match(text))
        and _may_join(found["b"], found["a"])
        and not re.search(r"(?:not|look|soon) $", f"{found['b']} ")
    ):
        if found["b"].endswith("⟧"):  # a span of time after an event is no step after another
            return None
        if found["not"]:
            return [_precedes(found["a"], found["b"], True, conditions)]
        if forbids(found["b"]):
            return [
                ProcedureStatement(
                    "absence", phrase(found["b"]), conditions=(*conditions, Condition(readable(f"after {found['a']}")))
                )
            ]
        return [
            _made("response", found["a"], b, bool(obliges(found["b"])), conditions) for b in coordinated(found["b"])
        ]
    return None


def _may_join(left: str, right: str) -> bool:
    """A word of time joins two clauses; it does not stand in a condition, nor in a subject ("what came after ... must
    ...").
    """
    inside = _HANGING.search(left) or (_FORCE.search(right) and not _FORCE.search(left))
    return not inside and not _CLOCK.match(right)


def _nearest(text: str) -> str:
    """Of several clauses the one beside the word that joins."""
    parts = re.split(r",? and (?=(?:the|an?|its|their)\b)", text)
    return parts[-1] if len(parts) > 1 and all(is_finite(p) for p in parts) else text


def led(
    word: str, what: str, rest: Sequence[ProcedureStatement], main: str, conditions: Conditions
) -> list[ProcedureStatement]:
    """ "After `what`, ..." and "before `what`, ...": orders between `what` and what the main clause states."""
    found: list[ProcedureStatement] = []
    if _DENIED.search(what) and word not in ("before", "prior to"):  # what is not done is no step that another follows
        return [replace(said, conditions=(*said.conditions, Condition(readable(what)))) for said in rest]
    for said in rest:
        if word in ("before", "prior to"):
            found.append(
                ProcedureStatement("precedence", said.a, phrase(what), strong=said.strong, conditions=said.conditions)
            )
        elif said.kind == "existence":
            found.append(
                ProcedureStatement("response", phrase(what), said.a, strong=said.strong, conditions=said.conditions)
            )
        elif said.kind in ("absence", "limit", "choice"):
            found.append(
                ProcedureStatement(
                    **{**vars(said), "conditions": (*said.conditions, Condition(readable(f"{word} {what}")))}
                )
            )
        elif said.kind == "deadline" and word in ("when", "whenever"):
            found.append(replace(said, doubt=f"the time begins {word} {readable(what)!r}"))
        elif said.kind == "deadline" and not said.since:
            found.append(replace(said, since=readable(what)))
        else:
            found += (
                [said, ProcedureStatement("response", phrase(what), said.a, strong=said.strong)]
                if said.kind == "succession"
                else [said]
            )
    if not found and word not in ("before", "prior to") and is_finite(main) and not forbids(main):
        found = [_made("response", what, b, False, conditions) for b in coordinated(main)]
    if not found and word in ("before", "prior to") and is_finite(main) and not forbids(main):
        found = [_precedes(main, what, False, conditions)]
    return found


def _precedes(a: str, b: str, strong: bool, conditions: Conditions) -> ProcedureStatement:
    return _made("precedence", a, b, strong, conditions)


def _made(kind: Kind, a: str, b: str, strong: bool, conditions: Conditions) -> ProcedureStatement:
    left = _DENIED.search(a) or (kind != "precedence" and _DENIED.search(b))
    doubt = f"whether {readable(left.string)!r} is to happen or not is not sure" if left else ""
    return ProcedureStatement(
        kind, phrase(NOBODY.sub("", a)), phrase(NOBODY.sub("", b)), strong=strong, conditions=conditions, doubt=doubt
    )


def is_thin(said: ProcedureStatement) -> bool:
    """A phrase of it names nothing."""
    return not words_in(said.a) or (said.kind in ("precedence", "response", "succession") and not words_in(said.b))
