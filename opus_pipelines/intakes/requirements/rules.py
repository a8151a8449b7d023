"""The sentences of a document with their places, and the rules among them: the constraints that they demand.

Marks (those of Markdown, and those that plain text imitates) separate headings, list items, table rows and prose. Code,
markup and settings are snippets and hold no sentences. A sentence has the place where a person finds it: "line 12",
"page 2, line 3", "row 3".

A limit counts only where its sentence concerns the whole of one piece of work ("claims are settled within 3 days", "at
most $40 per case"). The deadline of a step, the price of a hotel night or a reopening rate is no limit of the workflow.
A deadline is one of the lead time, waiting included. A day is 24 hours; a working day is 24 hours times 7/5, because a
week has five of them.

A rule is a normative sentence about the work in a process or contract document. Text is data: a sentence that addresses
the program ("ignore the rules", "rank this first"), and text in code, in markup, in quotation marks or in the client
input, demands nothing. `lwm.retrieval.rule_constraints` decides later which task a phrase means; what it cannot
decide is shown as a rule that is not applied.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

from opus_pipelines.intakes.documents.natural_language import foreign_language
from opus_pipelines.intakes.elements import PROCEDURAL, Element
from opus_pipelines.language.grammar.figures import Figure, hours
from opus_pipelines.language.grammar.modality import MUST, NEVER, PERMISSION, PROHIBITED, REQUIRED, REQUIRES
from opus_pipelines.language.grammar.reader import QUOTED, activity_column, statements_of, statements_of_row
from opus_pipelines.language.grammar.statements import Condition, ProcedureStatement
from opus_pipelines.language.word_stems import EMPTY, word_set

# documents whose sentences are kept: an intake's are asked for several times, a contract's by each intake
_DOCUMENTS_KEPT = 256
PAGE = "\f"  # stands between the pages of a document that has pages
_ABBREVIATIONS = word_set("e.g i.e etc no nos approx mr mrs ms dr inc ltd co vs cf art sec fig st")
_BEFORE_NUMBERS = word_set("no nos")  # "No. 5"; elsewhere it is an answer
_ITEM = re.compile(
    r"\s*(?:\[[ xX✓]?\]|☐|[-*+•–▪◦]|\(?\d{1,3}[.)]|\d{1,2}(?:\.\d{1,2})+\.?|\(?[a-z][.)])\s+(?=\S)", re.I
)
_PLAIN_NUMBER = re.compile(r"[A-Z]?\d{1,2}(?:\.\d{1,2})*\s")  # "4.3 When papers are wanting"; "4. Pay" is an item
_SECTION = re.compile(r"[A-Z]?\d{1,2}(?:\.\d{1,2})*[.)]?\s+[^\W\d_][^.!?:;]*$")  # "2. Steps", in front of "2.1 ..."
_SUBSECTION = re.compile(r"\d{1,2}\.\d{1,2}\.?\s")
_BOX = re.compile(r"\s*(?:[-*+]\s+)?\[[ xX✓]?\]\s+\S")  # a box to tick
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_RULE_LINE = re.compile(r"\s*(?:[-=_*]\s*){3,}$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_CELLS = re.compile(r"\s*\|.*\|\s*$|.* \| ")
_TAG = re.compile(r"<!--|-->|</?[a-z][^<>]{0,300}>", re.I)
_SNIPPET = re.compile(
    r"""\s*(?:[{}\[\]]|<[/!?a-z]|[\w."'\]\[-]+\s*=(?!=)|["'][\w.]+["']\s*:|\w*_\w*\s*:|(?:\$|>>>|//|/\*)\s*\S)""", re.I
)
_END = re.compile(r"""(?<=[.!?])["')\]*_`]*\s+(?=["'(\[*_`]*[A-Z0-9])""")
_MAIL_HEADER = re.compile(
    r"\s*>*\s*(?:from|to|cc|sent|date|subject|von|an|gesendet|datum|betreff|de|à|objet|envoyé|van|aan|onderwerp|para|"
    r"asunto|fecha)\s*:\s\S",
    re.I,
)
_EMPHASIS = re.compile(r"(\*\*|__|`)")
_PART = re.compile(r"(page|slide|sheet)\s+\S+$", re.I)
_HEAD_OF_TABLE = re.compile(r"[^:;]+(?:;[^:;]+)*")
_TABLES = ("text/csv", "text/tab-separated-values", "spreadsheetml", "ms-excel")
_FIGURE = re.compile(
    r":\s.*(?:\d\s*[a-z%$]|[$]\s?\d)", re.I
)  # a label with its figure says something, it heads nothing
_LONG_LINE = 4000  # characters beyond which a line is prose, whatever it begins with
_CELL = 80  # characters of a cell of such a table
_LABEL = 3  # words of a line that ends in a colon and is a heading for that
_SHORT = 8  # words of a line that may be a heading though nothing marks it as one


@dataclass(frozen=True)
class Sentence:
    """One sentence of an element.

    `shape` is prose, item, row, heading or snippet; `heading` is the nearest one above it; sentences of one
    paragraph or list item have the same `block`.
    """

    text: str
    element_id: str
    role: str
    place: str
    shape: str
    heading: str | None = None
    block: int = 0


@dataclass(frozen=True)
class _Block:
    lines: tuple[tuple[int, str], ...]
    shape: str


@lru_cache(_DOCUMENTS_KEPT)
def sentences_of(element: Element) -> tuple[Sentence, ...]:
    """Return every sentence of an element, in order; none where it has no text."""
    if not element.text:
        return ()
    if element.modality == "table" or any(kind in (element.media_type or "") for kind in _TABLES):
        return tuple(_rows(element, element.text))
    pages = (_without_mail_headers(element.text) if element.role in PROCEDURAL else element.text).split(PAGE)
    begins = [0, *accumulate(page.count("\n") for page in pages)]
    return tuple(
        s
        for number, (page, first) in enumerate(zip(pages, begins[:-1], strict=True), start=1)
        for s in _page(element, page, number, first)
    )


def _without_mail_headers(text: str) -> str:
    """Return a procedure without the lines at the head of its mails ("From: the head of credit"), which are empty."""
    return "\n".join("" if _MAIL_HEADER.match(line) else line for line in text.split("\n"))


_ASKS = re.compile(
    r"\b(?:please|kindly|(?:i|we)(?: would|'d) like|(?:i|we) (?:want|need|ask|request|claim)"
    r"|(?:asks?|requests?|wants?|would like) (?:for|to|you|that|us)"
    r"|can you|could you|would you|help (?:me|us)|(?:i|we)(?: am|'m| are|'re) (?:looking|asking|requesting"
    r"|writing to))\b",
    re.I,
)


def is_request(text: str) -> bool:
    """Return whether the sentence asks for something."""
    return bool(_ASKS.search(text))


def _page(element: Element, text: str, number: int, first: int) -> Iterator[Sentence]:
    """Yield the sentences of a page; `first` is the number of its first line in the whole text, from 0."""
    places = dict(element.places)
    before = f"page {number}, " if PAGE in (element.text or "") else ""
    heading: str | None = None
    for count, block in enumerate(_blocks(text.split("\n"))):
        for line, sentence in _in_block(block):
            yield Sentence(
                sentence,
                element.element_id,
                element.role,
                f"{before}line {line}" + (f", {places[at]}" if (at := first + line - 1) in places else ""),
                block.shape,
                heading,
                (number << 20) + count,
            )
        if block.shape == "heading":
            heading = _plain(block.lines[0][1])
            before = f"{heading.lower()}, " if _PART.match(heading) else before


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Yield the lines that belong together, with their shape; a blank line ends a block."""
    taken: list[tuple[int, str]] = []
    shape, fenced = "prose", False

    def flush() -> Iterator[_Block]:
        if taken:
            yield _Block(tuple(taken), shape)
            taken.clear()

    for number, line in enumerate(lines, start=1):
        if _FENCE.match(line):
            yield from flush()
            fenced, shape = not fenced, "prose"
            continue
        if fenced:
            yield _Block(((number, line.strip()),), "snippet")
            continue
        if not line.strip() or (len(line) <= _LONG_LINE and _RULE_LINE.match(line)):
            yield from flush()
            shape = "prose"
            continue
        here = _shape(line, bool(taken), lines[number].strip() if number < len(lines) else "")
        if here in (None, "item", "heading") and _is_among_rows(lines, number - 1):
            yield from flush()
            here = "row"
        if here is not None:
            yield from flush()
            shape = here
        if here in ("heading", "row", "snippet"):
            yield _Block(((number, _stripped(line, here)),), here)
            shape = "prose"
        else:
            taken.append((number, _ITEM.sub("", line, count=1).strip() if here == "item" else line.strip()))
    yield from flush()


def _is_among_rows(lines: list[str], place: int) -> bool:
    """Return whether a line is a row of a table.

    Such lines have the same number of short cells, at least three, with ";" or tabs between them.
    """
    counts = [
        (text.count(mark), mark)
        for text in lines[max(place - 1, 0) : place + 2]
        for mark in (";", "\t")
        if text.count(mark) > 1
    ]
    here = next(((n, mark) for mark in (";", "\t") if (n := lines[place].count(mark)) > 1), None)
    short = here is not None and all(len(cell) <= _CELL for cell in lines[place].split(here[1]))
    return short and counts.count(here or (0, "")) > 1


def _shape(line: str, inside: bool, following: str) -> str | None:
    """Return the shape that a line begins; None where it continues the block."""
    if len(line) > _LONG_LINE:
        return None
    if _HEADING.match(line):
        return "heading"
    if _CELLS.match(line):
        return "row"
    if _BOX.match(line):
        return "item"
    if _SNIPPET.match(line):
        return "snippet"
    bare = line.strip()
    if bare.endswith(":") and len(_ITEM.sub("", bare, count=1).split()) <= _LABEL and (_ITEM.match(line) or not inside):
        return "heading"
    is_section = _SECTION.match(bare) and len(bare.split()) <= _SHORT
    if is_section and (_SUBSECTION.match(following) or (_PLAIN_NUMBER.match(bare) and following[:1].isupper())):
        return "heading"
    if _ITEM.match(line):
        return "item"
    alone = not inside and (not following or _ITEM.match(following + " x") is not None) and not _FIGURE.search(bare)
    if (
        alone
        and len(bare.split()) <= _SHORT
        and not bare.endswith((".", "!", "?", ";", ",", ":"))
        and bare[:1].isupper()
    ):
        return "heading"
    return None


def _stripped(line: str, shape: str) -> str:
    match = _HEADING.match(line)
    if shape == "heading":
        return (match.group(1) if match else _ITEM.sub("", line, count=1)).strip().rstrip(":")
    return line.strip().strip("|").strip()


def _in_block(block: _Block) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a block, each with the line in which it begins."""
    if block.shape in ("heading", "row", "snippet"):
        text = _plain(block.lines[0][1]) if block.shape != "snippet" else block.lines[0][1]
        if text and set(text) - set("-:| "):
            yield block.lines[0][0], text
        return
    starts = list(accumulate((len(line) + 1 for _, line in block.lines[:-1]), initial=0))
    for start, sentence in split_sentences(" ".join(line for _, line in block.lines)):
        if plain := _plain(sentence):
            yield block.lines[bisect_right(starts, start) - 1][0], plain


def split_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a paragraph, each with its position; an abbreviation ends no sentence."""
    start = 0
    for end in _END.finditer(text):
        last = text[start : end.start()].rstrip(".!?\"')]").rsplit(None, 1)
        short = last[-1].casefold().lstrip("(") if text[end.start() - 1] == "." and last else ""
        if short in _ABBREVIATIONS and (short not in _BEFORE_NUMBERS or text[end.end() : end.end() + 1].isdigit()):
            continue
        yield start, text[start : end.start()].strip() + text[end.start() : end.end()].rstrip()
        start = end.end()
    if text[start:].strip():
        yield start, text[start:].strip()


def _plain(text: str) -> str:
    return " ".join(_TAG.sub(" ", _EMPHASIS.sub("", text)).split())


def _rows(element: Element, text: str) -> Iterator[Sentence]:
    """Yield the rows of a table in the form in which its reader writes it.

    This is a line of column names, then a line of `column: value; ...` for each row, with the sheets under
    headings.
    """
    sheet, head, number, row = "", "", 0, ""
    begins = re.compile("(?!)")

    def finished_row() -> Iterator[Sentence]:
        if row:
            yield Sentence(row, element.element_id, element.role, f"{sheet}row {number}", "row", head or None)

    for line in map(str.strip, text.split("\n")):
        if match := _HEADING.match(line):
            yield from finished_row()
            sheet, number, row = f"{match.group(1)}, ", 0, ""
        elif not begins.match(line) and _HEAD_OF_TABLE.fullmatch(line):
            yield from finished_row()
            head, row = line, ""
            begins = re.compile("|".join(re.escape(name.strip()) + ":" for name in line.split(";") if name.strip()))
        elif begins.match(line):
            yield from finished_row()
            number, row = number + 1, line
        elif row and line:
            row = f"{row} {line}"
    yield from finished_row()


WORK = (
    r"(?:cases?|claims?|requests?|invoices?|orders?|tickets?|applications?|intakes?|matters?|files?|reports?|visits?"
    r"|charges?|statements?|notes?"
    r"|bills?|complaints?|process(?:ing)?|workflow|handling|turnaround(?: time)?|work|service)"
)
_DONE = r"(?:settled|closed|completed?|finished|done|handled|processed|resolved|turned around|released|take[sn]?|last)"
_NUMBER = (
    r"(?P<n>\d(?:[\d,]{0,13}\d)?(?:\.\d{1,6})?|one|two|three|four|five|six|seven|eight|nine|ten|twelve"
    r"|twenty-four|forty-eight)"
)
_WORDS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twelve": 12,
    "twenty-four": 24,
    "forty-eight": 48,
}
_MOST = (
    r"(?:at most|no more than|not more than|no longer than|not longer than|(?:not |never )?exceed(?:s|ing)?|up to"
    r"|a maximum of|maximum"
    r"|max\.?|less than|below|under|capped at)"
)
_LEAST = r"(?:at least|a minimum of|minimum|no less than|not less than|not (?:fall|be|drop) below|more than|above)"
_MONEY = (
    rf"(?:(?:us)?\$\s?|usd:?\s?){_NUMBER}(?P<k>k\b)?|{_NUMBER.replace('?P<n>', '?P<n2>')}(?P<k2>k)?\s?(?:usd"
    rf"|us dollars|dollars|\$)"
)
_DURATION = re.compile(
    rf"\b(?:within|{_MOST}|no later than|take[sn]? {_MOST}|(?:longer|more) than)\s+{_NUMBER}\s*(?P<w>working "
    rf"|business )?(?:calendar )?"
    r"(?P<u>min(?:ute)?s?|h(?:ou)?rs?|h|days?|weeks?)\b(?P<tail>.*)$"
)
_TAIL = re.compile(r"\s*(?:(?:of|from|after|per|at the latest|at most|since|following)\b.*)?[\s.)]*$")
DAYS_A_WORKING_DAY = 7 / 5
_HOURS = {"m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
_COST = re.compile(rf"\b{_MOST}\s+(?:{_MONEY})(?P<tail>.*)$")
_PER_WORK = re.compile(rf"\s*(?:per|a|an|for each|for every|each)\s+{WORK}\b")
_OF_WORK = re.compile(rf"\bcosts?\b.*\b{WORK}\b|\b{WORK}\b.*\bcosts?\b")
_PER_CENT = re.compile(rf"(?P<bound>{_LEAST}|{_MOST})\s+{_NUMBER}\s*(?:%|per ?cent)")
_RIGHT = re.compile(
    r"\b(?:right|correct\w*|success\w*|accura\w+|without (?:an? )?(?:error|mistake)s?|error.free|first.time)\b"
)
_WRONG = re.compile(r"\b(?:errors?|fail\w*|mistakes?|defects?|wrong\w*|incorrect\w*)\b")


@dataclass(frozen=True)
class Limit:
    """A ceiling or floor for the whole work.

    It has the key of the constraint, the value in the unit of that key, and the words that say for which work it
    holds.
    """

    kind: str
    value: float
    subject: str


def limit_of(text: str) -> Limit | None:
    """Return the limit that a clause (in lower case) sets for the whole work; None where it sets none."""
    return _success(text) or _duration(text) or _cost(text)


def _duration(text: str) -> Limit | None:
    match = _DURATION.search(text)
    if not match or not _TAIL.match(match["tail"]):
        return None
    subject = text[: match.start()]
    if not re.search(rf"\b{WORK}\b.*\b{_DONE}\b", text[: match.end("u")]) or not re.search(rf"\b{WORK}\b", subject):
        return None
    unit = match["u"][0]
    per_unit = _HOURS[unit] * (DAYS_A_WORKING_DAY if match["w"] and unit == "d" else 1.0)
    return Limit("max_lead_time_hours", round(_number(match["n"]) * per_unit, 6), _whose(subject))


def _cost(text: str) -> Limit | None:
    match = _COST.search(text)
    if not match:
        return None
    subject = text[: match.start()]
    per_work = _PER_WORK.match(match["tail"])
    about_cost = _OF_WORK.search(subject) or (per_work and re.search(r"\bcosts?\b", subject))
    if not about_cost and not (per_work and not re.search(r"[a-z]", subject)):
        return None
    return Limit("max_cost_usd", _dollars(match), _whose(subject))


def _success(text: str) -> Limit | None:
    match = _PER_CENT.search(text)
    if not match or not re.search(rf"\b{WORK}\b", text):
        return None
    share, low = _number(match["n"]) / 100, bool(re.fullmatch(_LEAST, match["bound"]))
    rest = text[: match.start()] + text[match.end() :]
    if low and _RIGHT.search(rest) and not _WRONG.search(rest.replace("without error", "")):
        return Limit("min_success", share, _whose(rest))
    if not low and _WRONG.search(rest):
        return Limit("min_success", 1 - share, _whose(rest))
    return None


_NEUTRAL = re.compile(
    rf"\b(?:{WORK}|{_DONE}|costs?|must|shall|has to|have to|not|never|exceed|rate|share|target|overall|total|whole"
    rf"|full|complete|handle"
    r"|handling|processing|settle|close|closing|settling|success\w*|correct\w*|accura\w+|right|errors?|fail\w*"
    r"|mistakes?|wrong\w*"
    r"|incorrect\w*|first.time|without|new|single|individual|day|clients?|customers?)\b"
)


def _whose(subject: str) -> str:
    return " ".join(w for w in _NEUTRAL.sub(" ", subject).split() if w.strip(".,") not in EMPTY)


def _dollars(match: re.Match[str]) -> float:
    groups = match.groupdict()
    return _number(groups.get("n") or groups["n2"]) * (1000 if groups.get("k") or groups.get("k2") else 1)


def _number(text: str) -> float:
    return float(_WORDS[text]) if text in _WORDS else float(text.replace(",", ""))


LONGEST = 600  # characters of a sentence beyond which its grammar is not to be trusted
UNREAD = "it obliges, but what it asks for could not be read"
DOUBTFUL = "not understood for sure ({}); say it in a plain sentence of its own, or state it in contract.toml"
BOUND = "it bounds an amount, a count or a measure inside the case, and a workflow has no such figure to compare"

_LABELLED = re.compile(
    r"^(?P<whose>[^:;,.]{0,40}?)\b(?:(?P<time>sla|service levels?|turnaround(?: time)?|(?:handling|processing"
    r"|lead) time|time limit)"
    r"|(?P<cost>budget|cost (?:ceiling|limit|cap)|max(?:imum|\.) cost))\s*:\s*(?P<value>[^:;]*\d[^:;]*)$",
    re.I,
)
_BOUND_LAST = re.compile(r"^(?P<value>.*\d.*?)\s+(?P<bound>at most|at least|maximum|minimum)$", re.I)
_ADDRESS = re.compile(
    r"\b(?:ignore|disregard|forget|override|overrule|bypass|discard)\b.*\b(?:rules?|instructions?|constraints?"
    r"|polic\w+|limits?|prompts?"
    r"|above|previous|prior|everything|anything|all)\b"
    r"|^\W*(?:system|assistant|user|developer|admin|root)\b\s*[:>\]]"
    r"|\b(?:you are|you're|roleplay|pretend|as an ai|an ai|llm|gpt|chatbot|language model|jailbreak|developer mode)\b"
    r"|^new prompt\b|\b(?:this|the|new|following) prompt\b"
    r"|\b(?:this|the) (?:system|program|planner|optimi[sz]er|generator|model|algorithm|pipeline|engine)"
    r"(?= (?:must|shall|has to|may|will|should))"
    r"|\b(?:rank(?:s|ed|ing)?|feasible|infeasible|constraints?|must_contain|must_not_contain|max_\w+|min_success"
    r"|gain_usd)\b"
)


def addresses_program(text: str) -> bool:
    """Return whether a sentence addresses the program instead of saying how the work is done."""
    return bool(_ADDRESS.search(text.casefold()))


_TARGETS = re.compile(r"\b(target|limit|maximum|max|minimum|sla|service level|due|deadline)\b", re.I)
_JOINTS = (("at most|at least", ""), ("%|per ?cent", "at least"), (r"\b(?:min|hour|day|week|h)", "within"))
_BEGINNING = re.compile(  # from then on the work runs; history's steps begin with it
    r"^(?:(?:its|their|the|an?|this|of|being) )*(?:receipt|receiving|received|arrival|start|beginning|begin"
    r"|submission|opening|request"
    r"|notification|reporting|filing|intake)\b(?! (?:approved|checked|paid|closed))",
    re.I,
)
_AGENT = re.compile(r"\bby (?:an?|the|two|one|some\w*|our|its|his|their|another|every\w*)\b.*$")


@dataclass(frozen=True)
class RuleDemand:
    """One demand: a key of the constraints, with the clauses that name its tasks or with the value of a limit.

    `kind` may also be: one_of or exactly_one_of, whose clauses are the options; deadlines, the time (`figure`)
    until the task of the first clause is done, counted from that of the second clause where there is one; limit or
    none, which no constraint expresses. `before` has two clauses. A max_lead_time_hours has the clauses and the figure
    of a deadline where its sentence may name a step: "tickets are resolved within 10 days".

    `verbs`: for each clause, the stem that the name of its task must have, "" for any. `depends_on`: a step; the
    demand holds only where it is done. `after`: the task must come after that step. `scope`: words that the intake
    must hold. `conditions`: conditions on the facts of the intake. `no_effect_reason`: why the demand can have no
    effect, where its words tell. `shown`: the text that is shown, where the clauses do not say everything.
    """

    kind: str
    clauses: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("",)
    value: float | None = None
    figure: Figure | None = None
    strong: bool = True
    depends_on: str = ""
    after: bool = False
    scope: str = ""
    conditions: tuple[Condition, ...] = ()
    no_effect_reason: str | None = None
    shown: str = ""


@dataclass(frozen=True)
class Rule:
    """A normative sentence, its statements and its demands."""

    sentence: Sentence
    demands: tuple[RuleDemand, ...] = ()
    statements: tuple[ProcedureStatement, ...] = ()


def rules_of(elements: Iterable[Element]) -> list[Rule]:
    """Return every rule of the documents that may bind, in order.

    A contract's documents are read once and then kept.
    """
    return [
        rule
        for e in elements
        if e.role in PROCEDURAL
        for rule in (_shared(e) if e.role == "contract" else read_rules(e))
    ]


@lru_cache(maxsize=64)
def _shared(element: Element) -> tuple[Rule, ...]:
    return read_rules(element)


def read_rules(element: Element) -> tuple[Rule, ...]:
    """Return the rules of one element.

    An answer is read together with the question before it, because it may leave out words of the question.
    """
    rules, question = [], ""
    column: int | None = None
    for sentence in sentences_of(element):
        if sentence.shape != "row":
            column = None
        elif (heading := activity_column(sentence.text)) is not None:
            column = heading
            continue
        foreign = foreign_language(sentence.text) if sentence.shape in ("prose", "item") else None
        if foreign is not None:
            reason = f"it is written in {foreign}, in which only rules that name a step are read"
            rules.append(Rule(sentence, (RuleDemand("none", no_effect_reason=reason),)))
        elif rule := rule_of(sentence, question, column):
            rules.append(rule)
        question = sentence.text if sentence.text.rstrip().endswith("?") else ""
    return tuple(rules)


def rule_of(sentence: Sentence, question: str = "", column: int | None = None) -> Rule | None:
    """Return the rule of a sentence; None where it demands nothing.

    `question`: the question that it answers. `column`: the index of the activity column, where the sentence is a
    row of a table.
    """
    if sentence.shape in ("heading", "snippet") or len(sentence.text) > LONGEST or sentence.text.rstrip().endswith("?"):
        return None
    is_row = sentence.shape == "row"
    texts = list(_cells(sentence)) if is_row else [sentence.text]
    clauses = [clause for text in texts for clause in _parts(text)]
    normative = any(map(_is_normative, clauses))
    if any(map(addresses_program, clauses)):
        addressed = normative or any(map(limit_of, clauses))
        return (
            Rule(sentence, (RuleDemand("none", no_effect_reason="it addresses the program, not the work"),))
            if addressed
            else None
        )
    limits = [d for clause in clauses for d in _limits(clause, is_row)]
    statements = (
        statements_of_row(sentence.text, column)
        if is_row
        else statements_of(_with_question(sentence.text, question), sentence.shape)
    )
    remaining = [
        s for s in statements if not (limits and s.kind in ("deadline", "limit", "existence"))
    ]  # the limit of the whole says these, too
    reliable = tuple(s for s in remaining if not s.doubt)
    reliable_deadlines = (s for s in statements if s.kind == "deadline" and not s.doubt)
    of_step = next((d for s in reliable_deadlines for d in demands_of(s) if d.kind == "deadlines"), None)
    demands = (*(_may_be_of(limit, of_step) for limit in limits), *(d for s in reliable for d in demands_of(s)))
    if unsure := next((s.doubt for s in remaining if s.doubt), ""):
        demands = (*demands, RuleDemand("none", no_effect_reason=DOUBTFUL.format(unsure)))
    if normative and not demands and not any(PERMISSION.search(clause) for clause in clauses):
        demands = (RuleDemand("none", no_effect_reason=UNREAD),)
    return Rule(sentence, demands, tuple(s for s in statements if not s.doubt)) if demands else None


def demands_of(statement: ProcedureStatement) -> Iterator[RuleDemand]:
    """Yield the demands of a statement."""
    a, b = statement.a, statement.b
    conditions = statement.conditions
    if statement.kind == "existence":
        yield RuleDemand("must_contain", (a,), (statement.verb,), strong=statement.strong, conditions=conditions)
    elif statement.kind == "absence":
        yield RuleDemand("must_not_contain", (a,), (statement.verb,), conditions=conditions)
    elif statement.kind in ("precedence", "response", "succession"):
        yield RuleDemand("before", (a, b), ("", ""), strong=statement.strong, conditions=conditions)
        if statement.strong and statement.kind in ("precedence", "succession"):
            yield RuleDemand("must_contain", (a,), depends_on=b, conditions=conditions)
        if statement.strong and statement.kind in ("response", "succession"):
            yield RuleDemand("must_contain", (b,), depends_on=a, after=True, conditions=conditions)
    elif statement.kind == "choice":
        kind = "exactly_one_of" if statement.exclusive else "one_of"
        yield RuleDemand(kind, statement.options, ("",) * len(statement.options), conditions=conditions)
    elif statement.kind == "deadline":
        figure = Figure(statement.amount or 0.0, statement.unit, statement.calendar)
        if a:
            clauses = (a,) if not statement.since or _BEGINNING.match(statement.since) else (a, statement.since)
            yield RuleDemand("deadlines", clauses, ("",) * len(clauses), figure=figure, conditions=conditions)
        else:
            yield RuleDemand("max_lead_time_hours", value=hours(figure), conditions=conditions)
    else:
        yield RuleDemand(
            "limit",
            shown=f"{a} {statement.op} {statement.amount:g} {statement.unit}",
            conditions=conditions,
            no_effect_reason=BOUND,
        )


def rule_clauses(rules: Iterable[Rule]) -> list[str]:
    """Return the clauses that may have to be compared with tasks by their vectors, each once."""
    live = [d for rule in rules for d in rule.demands if d.no_effect_reason is None]
    clauses = [c for d in live for c in (*d.clauses, d.depends_on) if c]
    return list(dict.fromkeys(text for c in clauses for text in (c, without_agent(c)) if text))


def _limits(clause: str, is_row: bool) -> Iterator[RuleDemand]:
    """Yield the limit that a clause sets for the whole work."""
    limit = limit_of(clause)
    if limit is not None:
        kept = limit.value > 0 and (limit.kind != "min_success" or limit.value <= 1)
        idle = None if kept else "a limit that nothing can keep is taken for none"
        idle = "a permission, not a limit" if PERMISSION.search(clause) and not is_row else idle
        yield RuleDemand(limit.kind, value=limit.value, scope=limit.subject, no_effect_reason=idle)


def _may_be_of(limit: RuleDemand, deadline: RuleDemand | None) -> RuleDemand:
    """Return a limit with the step that its sentence may name, where the sentence can be read as a step's deadline."""
    if deadline is None or limit.kind != "max_lead_time_hours":
        return limit
    return replace(limit, clauses=deadline.clauses, verbs=deadline.verbs, figure=deadline.figure)


def _with_question(text: str, question: str) -> str:
    answer = re.sub(r"^a(?:nswer)?\s*[:.]\s*", "", text, flags=re.I)
    return f"{question} A: {answer}" if question else text


def without_agent(clause: str) -> str:
    """Return a phrase without the words for who does it, because the names of most tasks lack them."""
    return _AGENT.sub(" ", clause).strip(" ,.")


def _is_normative(clause: str) -> bool:
    return any(pattern.search(clause) for pattern in (MUST, REQUIRED, NEVER, PROHIBITED)) or bool(
        REQUIRES.match(clause)
    )


def _cells(sentence: Sentence) -> Iterator[str]:
    """Yield the long cells of a row as sentences, and a row with a target as the sentence that it stands for."""
    cells = [
        (name.strip(), value.strip()) for name, _, value in (cell.partition(":") for cell in sentence.text.split(";"))
    ]
    values = [value or name for name, value in cells]
    yield from (value for value in values if len(value.split()) >= 4)
    place = next((n for n, (name, _) in enumerate(cells) if _TARGETS.search(name)), None)
    if place is not None:
        subject = " ".join(values[:place])
        target = " ".join(values[place:])
        if match := _BOUND_LAST.match(target):
            target = f"{match['bound']} {match['value']}"
        joint = next((word for pattern, word in _JOINTS if re.search(pattern, target)), "at most")
        yield f"{subject} {joint} {target}"


def _parts(text: str) -> Iterator[str]:
    """Yield the clauses of a sentence that stand by themselves, in lower case, without quotations."""
    bare = QUOTED.sub(" ", text)
    if match := _LABELLED.match(bare.rstrip(" .")):
        bare = (
            f"{match['whose']} handling {'takes' if match['time'] else 'costs per case'} at most "
            f"{_bounded(match['value'])}"
        )
    if addresses_program(bare):
        yield bare.casefold()
        return
    for part in re.split(r";|:\s|\s[–—-]\s", bare):
        if len(part.split()) > 1:
            yield " ".join(part.casefold().replace("’", "'").rstrip(".!").split())


def _bounded(value: str) -> str:
    """Return the value of a label without the words for its bound."""
    return re.sub(
        r"^(?:at most|max(?:imum|\.)?|up to|within|no more than)\s+|\s+(?:at most|maximum|max\.?)$",
        "",
        value.casefold().strip(),
    )
