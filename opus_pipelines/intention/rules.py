"""What a sentence of the process context demands of a workflow, read from its words alone. English; this project's own grammar.

Text is data. A demand is a normative sentence about the work in a process or contract document: who writes to the program
("ignore the rules", "rank this first"), in code, in markup, in quotation marks or in the client's input, demands nothing.
Which task a clause means is settled later (`generation.meaning`); what cannot be settled stays a rule without effect.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from opus_pipelines.intention.elements import Element
from opus_pipelines.intention.limits import Amount, amount_of, limit_of
from opus_pipelines.intention.procedure.reader import statements_of
from opus_pipelines.intention.procedure.rows import statements_of_row
from opus_pipelines.intention.sentences import Sentence, sentences_of
from opus_pipelines.intention.stated import Statement
from opus_pipelines.intention.words import stems

SPEAKING = ("process", "contract")  # roles whose sentences may bind
LONGEST = 600  # characters of a sentence beyond which its grammar is not to be trusted

_MUST = re.compile(r"\b(?:must|shall|ha(?:s|ve) to|needs? to|(?:is|are) to|always)\b(?: always| also| first)?(?: be\b)?")
_REQUIRED = re.compile(r"\b(?:is|are) (?:always )?(?:required|mandatory|compulsory|obligatory)\b")
_NEVER = re.compile(
    r"\b(?:must not|mustn't|must never|shall not|shall never|may not|may never|can ?not|do not|don't|never|(?:is|are) (?:not|never) to"
    r"|under no circumstances)\b(?: be\b)?"
)
_PROHIBITED = re.compile(r"\b(?:is|are) (?:strictly )?(?:forbidden|prohibited|not (?:allowed|permitted))\b")
_SKIPPED = re.compile(
    r"\b(?:left out|leave out|leaving out|skip(?:ped|ping)?|omit(?:ted|ting)?|waive[sd]?|waiving|bypass(?:ed|ing)?|forg[eo]t(?:ten|ting)?"
    r"|dispens(?:ed?|ing) with)\b"
)
_NEGATION = re.compile(r"^(?!.*\b(?:what|which|who|that)\b).*?\b(?:nothing|nobody|no one|none|no|never|not|don't|mustn't)\b")
_NEGATIVES = re.compile(r"\b(?:nothing|nobody|no one|none|no|never|not|don't|mustn't)\b")
_NO_NO = re.compile(r"no (?P<a>[^,]+), no (?P<b>[^,]+)")
_UNTIL = re.compile(r"\b(?:before|until|unless|without|prior to)\b")
_ONLY = re.compile(r"\bonly\b(?P<mid>.*?)\b(?:after|once|when|if|upon)\b(?P<a>.+)$")
_FIRST = re.compile(r"^(?:before|prior to)\b(?P<b>[^,]+),(?P<a>.+)$")
_NOT_UNTIL = re.compile(r"^(?:until|unless)\b(?P<a>[^,]+),(?P<b>.+)$")
_ENSURE = re.compile(
    r"^(?:please )?(?:always )?(?:(?:ensure|make sure|see to it)(?: that)?|it must be ensured(?: that)?)\s+"
    r"(?=.*\b(?:is|are|be|been) (?:\w+ed|paid|sent|made|done|held|taken|written|given|told|sought)\b)"
)
_REQUIRES = re.compile(r"^(?:an?|any|each|every|all)\b(?P<whose>[^,]{0,40}?)\brequires?\b(?P<a>.+)$")
_OF_AMOUNT = re.compile(
    r"(?:^|\s)(?:if|when(?:ever)?|where(?:ver)?|in case)(?:\s+(?:an?|the|any|its|this|that|it|of|is|are|was|be|claimed|total|amounts?"
    r"|sums?|values?|loss(?:es)?|damages?|claims?|settlements?|invoices?|expenses?|costs?|prices?|bills?|orders?|payments?|refunds?"
    r"|reports?|requests?|cases?))*\s*(?:,\s*|$)"
)
_LABELLED = re.compile(
    r"^(?P<whose>[^:;,.]{0,40}?)\b(?:(?P<time>sla|service levels?|turnaround(?: time)?|(?:handling|processing|lead) time|time limit)"
    r"|(?P<cost>budget|cost (?:ceiling|limit|cap)|max(?:imum|\.) cost))\s*:\s*(?P<value>[^:;]*\d[^:;]*)$", re.I,
)
_BOUND_LAST = re.compile(r"^(?P<value>.*\d.*?)\s+(?P<bound>at most|at least|maximum|minimum)$", re.I)
_AFTER = re.compile(r"^(?:after|once)\b(?P<a>[^,]+),(?P<b>.+)$")
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|where|wherever|unless|except|in case|as long as|while|provided|until|before|after|without|what|that|which"
    r"|who|whose|whoever|whatever|otherwise|instead|more than once|twice|again)\b"
)
_PERMISSION = re.compile(
    r"\b(?:may|can|could|might|need not|needn't|(?:does|do|is|are) not (?:need|required|necessary)|no need|optional|should)\b"
)
_PREFIX = re.compile(r"^(?:for|in case of|in the case of|with|on)\s+(?P<scope>[^,]{3,60}),\s*(?P<rest>.+)$")
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|«[^»]*»|(?<!\w)\'[^\']{4,}\'(?!\w)')
_ADDRESS = re.compile(
    r"\b(?:ignore|disregard|forget|override|overrule|bypass|discard)\b.*\b(?:rules?|instructions?|constraints?|polic\w+|limits?|prompts?"
    r"|above|previous|prior|everything|anything|all)\b"
    r"|^\W*(?:system|assistant|user|developer|admin|root)\b\s*[:>\]]"
    r"|\b(?:you are|you're|roleplay|pretend|as an ai|an ai|llm|gpt|chatbot|language model|jailbreak|developer mode)\b"
    r"|^new prompt\b|\b(?:this|the|new|following) prompt\b"
    r"|\b(?:this|the) (?:system|program|planner|optimi[sz]er|generator|model|algorithm|pipeline|engine)"
    r"(?= (?:must|shall|has to|may|will|should))"
    r"|\b(?:rank(?:s|ed|ing)?|feasible|infeasible|constraints?|must_contain|must_not_contain|max_\w+|min_success|gain_usd)\b"
)
_TARGETS = re.compile(r"\b(target|limit|maximum|max|minimum|sla|service level|due|deadline)\b", re.I)
_JOINTS = (("at most|at least", ""), ("%|per ?cent", "at least"), (r"\b(?:min|hour|day|week|h)", "within"))
_COORDINATED = re.compile(r",? and (?=(?:(?!must|shall)[\w'-]+ )+(?:must|shall)\b)")
_CONCESSION = re.compile(r",? even (?:if|when|where|while|before|after)\b[^,]*|, (?:whoever|whatever|whichever|no matter)\b[^,]*")
_AGENT = re.compile(r"\bby (?:an?|the|two|one|some\w*|our|its|his|their|another|every\w*)\b.*$")


@dataclass(frozen=True)
class Demand:
    """One demand: a key of the constraints, with the clauses that name its tasks (two for `before`) or the limit's value.

    `verbs`: the stem that a clause's task must be called by, "" where any will do; `given`: a step on whose being done it hangs;
    `scope`: words that the intake must say; `idle`: why it can have no effect, as far as the words tell.
    """

    kind: str
    clauses: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("",)
    value: float | None = None
    strong: bool = True
    given: str = ""
    scope: str = ""
    amount: Amount | None = None
    idle: str | None = None


@dataclass(frozen=True)
class Rule:
    """A normative sentence and what it demands; `demands` may be empty where it asks for something that no constraint expresses."""

    sentence: Sentence
    demands: tuple[Demand, ...] = ()
    statements: tuple[Statement, ...] = ()


def rules_of(elements: Iterable[Element]) -> list[Rule]:
    """Every rule of the documents that may bind, in order. A contract's documents are read once a process."""
    return [rule for e in elements if e.role in SPEAKING for rule in (_shared(e) if e.role == "contract" else read_rules(e))]


@lru_cache(maxsize=64)
def _shared(element: Element) -> tuple[Rule, ...]:
    return read_rules(element)


def read_rules(element: Element) -> tuple[Rule, ...]:
    """The rules of one element."""
    return tuple(rule for sentence in sentences_of(element) if (rule := rule_of(sentence)))


def rule_of(sentence: Sentence) -> Rule | None:
    """The rule that a sentence is; None where it demands nothing of anyone."""
    if sentence.shape in ("heading", "snippet") or len(sentence.text) > LONGEST or sentence.text.rstrip().endswith("?"):
        return None
    texts = list(_cells(sentence)) if sentence.shape == "row" else [sentence.text]
    found = tuple(d for text in texts for clause in _parts(text) for d in _demands(clause, sentence.shape == "row"))
    normative = any(_is_normative(text.casefold()) for text in texts)
    said = statements_of_row(sentence.text) if sentence.shape == "row" else statements_of(sentence.text, sentence.shape)
    return Rule(sentence, found, said) if found or normative or said else None


def clauses_of(rules: Iterable[Rule]) -> list[str]:
    """The clauses that may have to be compared with tasks by what they mean: texts to be encoded, each once."""
    live = [d for rule in rules for d in rule.demands if d.idle is None]
    return list(dict.fromkeys(c for d in live for c in (*d.clauses, d.given) if c))


def _is_normative(text: str) -> bool:
    return any(said.search(text) for said in (_MUST, _ENSURE, _REQUIRES, _REQUIRED, _NEVER, _PROHIBITED))


def _cells(sentence: Sentence) -> Iterator[str]:
    """A row's long cells as sentences, and a row with a target as the sentence that it stands for."""
    cells = [(name.strip(), value.strip()) for name, _, value in (cell.partition(":") for cell in sentence.text.split(";"))]
    values = [value or name for name, value in cells]
    yield from (value for value in values if len(value.split()) >= 4)
    place = next((n for n, (name, _) in enumerate(cells) if _TARGETS.search(name)), None)
    if place is not None:
        said = " ".join(values[:place])
        target = " ".join(values[place:])
        if found := _BOUND_LAST.match(target):
            target = f"{found['bound']} {found['value']}"
        joint = next((word for pattern, word in _JOINTS if re.search(pattern, target)), "at most")
        yield f"{said} {joint} {target}"


def _parts(text: str) -> Iterator[str]:
    """The clauses of a sentence that stand by themselves, lower case, without what is quoted."""
    bare = _QUOTED.sub(" ", text)
    if found := _LABELLED.match(bare.rstrip(" .")):
        bare = f"{found['whose']} handling {'takes' if found['time'] else 'costs per case'} at most {_bounded(found['value'])}"
    if _ADDRESS.search(bare.casefold()):
        yield bare.casefold()
        return
    for part in re.split(r";|:\s|\s[–—-]\s", bare):
        if len(part.split()) > 1:
            yield from _coordinated(_CONCESSION.sub("", " ".join(part.casefold().replace("’", "'").rstrip(".!").split())))


def _coordinated(text: str) -> Iterator[str]:
    """The clauses that an "and" joins where each has its own subject and force, and nothing at the head governs all of them."""
    parts = _COORDINATED.split(text)
    governed = _CONDITION.match(text) or _PREFIX.match(text) or limit_of(text) or amount_of(text)[0]
    yield from parts if all(_MUST.search(p) and not _NEGATIVES.search(p) for p in parts) and not governed else [text]


def _bounded(value: str) -> str:
    """A label's value without the bound that it may state in words: it is one anyway."""
    return re.sub(r"^(?:at most|max(?:imum|\.)?|up to|within|no more than)\s+|\s+(?:at most|maximum|max\.?)$", "", value.casefold().strip())


def _demands(text: str, is_row: bool) -> list[Demand]:
    if _ADDRESS.search(text):
        said = _is_normative(text) or limit_of(text) is not None
        return [Demand("none", idle="it addresses the program, not the work")] if said else []
    if limit := limit_of(text):
        kept = limit.value > 0 and (limit.kind != "min_success" or limit.value <= 1)
        idle = None if kept else "a limit that nothing can keep is taken for none"
        idle = "a permission, not a limit" if _PERMISSION.search(text) and not is_row else idle
        return [Demand(limit.kind, value=limit.value, scope=limit.subject, idle=idle)]
    prefixed = _PREFIX.match(text)
    scope, text = (prefixed["scope"], prefixed["rest"]) if prefixed else ("", text)
    text = _ENSURE.sub("must ", text)
    amount, text = amount_of(text)
    text = _OF_AMOUNT.sub(" ", text).strip() if amount else text
    found = _ordered(text) or _skipped(text) or _forbidden(text) or _required(text)
    return [_with(d, scope, amount) for d in found]


def _with(demand: Demand, scope: str, amount: Amount | None) -> Demand:
    return Demand(
        demand.kind, demand.clauses, demand.verbs, demand.value, demand.strong, demand.given, scope or demand.scope, amount, demand.idle
    )


def _ordered(text: str) -> list[Demand]:
    """`a before b`, in any of the ways of saying so; said with force it also demands a wherever b is done."""
    if found := _ONLY.search(text):
        return _sequence(_near(found["a"], 0), _near(text[: found.start()], -1) + found["mid"], True)
    if found := _AFTER.match(text):
        return _sequence(found["a"], _near(found["b"], 0), bool(_MUST.search(found["b"])))
    if (found := _FIRST.match(text)) and not _NEGATION.search(found["a"]):
        return _sequence(_near(found["a"], 0), found["b"], bool(_MUST.search(found["a"])))
    if (found := _NOT_UNTIL.match(text)) and _NEGATION.search(found["b"]) and not _SKIPPED.search(found["b"]):
        return _sequence(found["a"], found["b"], True)
    if found := _NO_NO.fullmatch(text):
        return _sequence(found["a"], found["b"], True)
    found = _UNTIL.search(text)
    if not found or text[: found.start()].endswith(" as "):
        return []
    left, right = text[: found.start()], _near(text[found.end() :], 0)
    forbidden = _NEGATION.search(left) or _PROHIBITED.search(text)
    if forbidden and not _SKIPPED.search(left):
        return _sequence(right, left, True)
    if found[0] in ("before", "prior to"):
        return _sequence(_near(left, -1), right, bool(_MUST.search(left)))
    return []


def _sequence(first: str, then: str, strong: bool) -> list[Demand]:
    a, b = _clause(first), _clause(then)
    if not a or not b:
        return []
    order = Demand("before", (a, b), ("", ""), strong=strong)
    return [order, Demand("must_contain", (a,), given=b)] if strong else [order]


def _near(text: str, which: int) -> str:
    """The first (0) or last (-1) of a text's coordinated clauses: the one next to the word that joins."""
    parts = [p for p in re.split(r",|\band\b", text) if p.strip()]
    return parts[which] if parts else ""


def _skipped(text: str) -> list[Demand]:
    if not (_SKIPPED.search(text) and (_NEVER.search(text) or _PROHIBITED.search(text))):
        return []
    clause = _SKIPPED.sub(" ", _NEVER.sub(" ", text))
    return [Demand("must_contain", (_clause(clause),), ("",), idle=_hangs(clause))]


def _forbidden(text: str) -> list[Demand]:
    found = _NEVER.search(text)
    if found:
        verb = stems(text[found.end() :])[:1]
        return [Demand("must_not_contain", (_clause(text),), verb or ("",), idle=_hangs(text))]
    if (found := _PROHIBITED.search(text)) and (rest := text[found.end() :]).startswith(" to "):
        return [Demand("must_not_contain", (_clause(rest[4:]),), stems(rest)[:1] or ("",), idle=_hangs(rest))]
    if found:
        return [Demand("must_not_contain", (_clause(text[: found.start()]),), stems(text[: found.start()])[:1] or ("",), idle=_hangs(text))]
    return []


def _required(text: str) -> list[Demand]:
    if found := _REQUIRED.search(text):
        verb = stems(text[: found.start()])[:1]
    elif found := _REQUIRES.match(text):
        return [Demand("must_contain", (_clause(f"{found['whose']} {found['a']}"),), idle=_hangs(text))]
    elif found := _MUST.search(text):
        verb = stems(text[found.end() :])[:1]
    else:
        return []
    idle = "a permission, not a demand" if _PERMISSION.search(text) else _hangs(text)
    idle = "it says what need not or must not be" if _NEGATIVES.search(text[: found.start()]) else idle
    return [Demand("must_contain", (_clause(text),), verb or ("",), idle=idle)]


def _hangs(text: str) -> str | None:
    found = _CONDITION.search(text)
    return f"it hangs on a condition ({found[0]!r}) that the intake's data cannot settle" if found else None


def _clause(text: str) -> str:
    """The words that name a step: without the force, without who does it."""
    text = _AGENT.sub(" ", text)
    for pattern in (_NEVER, _MUST, _REQUIRED, _PROHIBITED, _NEGATIVES):
        text = pattern.sub(" ", text)
    return " ".join(text.strip(" ,.").split())
