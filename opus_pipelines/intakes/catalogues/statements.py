"""Cuts a procedure in prose into statements: clauses, each of which may ask for one step.

Reads the tables of a procedure: which column says what is done, and which says when.

A table is written with bars or with tabs. Its head names the columns. Where the head names a column of actions, that
is the one; otherwise it is the column with the most words. Where the head names a column of situations ("Situation",
"If", "Condition"), each row says what is done in its situation. The words are those of English procedures.

Reads questions with their answers ("Q: ... A: ...") as the statements that both make together.

"What if the car is abroad? It is towed." says what is done if the car is abroad. "Who tells the office? The manager
does." asks for telling the office, and so does "Do we tell the office? Yes." Any other question only leads to its
answer. The words are those of English procedures.

Headings, frames of tables and subordinate clauses ("when the owner arrives") ask for no step. A clause is marked where
it forbids something ("do not send the letter") or holds only where what was said before does not ("otherwise"). The
words are those of English procedures; the rules are this project's own. A clause that states what is, or that says
what a step waits for ("before the bill is paid"), may only name a step, all of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opus_pipelines.intakes.catalogues.facts import (
    inner_parts,
    is_conditional,
    is_fact,
    is_label,
    is_participle,
    is_reference,
    is_role,
    is_scope,
    is_scope_of,
    own_condition,
    subject_of,
)
from opus_pipelines.language.embedding.texts import ALONE_WORDS


def _words_of(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", text.casefold()))


ACTIONS = frozenset({"action", "activity", "measure", "response", "task", "what", "done", "do"})
SITUATIONS = frozenset({"case", "condition", "criterion", "if", "situation", "trigger", "when"})
# words of which the name of a column consists
HEADS = _words_of(
    """
    accountable action activity by case check comment condition criterion date deadline department description details
    do done due duration function id if measure no notes nr number owner person phase position process remark remarks
    response responsibility responsible role rule situation stage status step steps system task team time tool topic
    trigger what when where who
"""
) | _words_of("a be for in is of s the to")
_MARK = re.compile(r"^((?:\(?\d+(?:\.\d+)*[.)]|\(?[A-Za-z][.)]|[*•\-–+◦▪☐☑☒✓]|\[[ xX]?\]))\t+")
_ALWAYS = re.compile(
    r"^(?:all(?: cases)?|always|any|every(?: time)?|in (?:all|any) cases?|n/?a|[-–—*]*)$", re.IGNORECASE
)
_FRAME = re.compile(r"^[\s|:+=-]+$")
_BEGINS_SUBORDINATE = re.compile(r"^(?:if|when|where|in case|unless|otherwise|else|only)\b", re.IGNORECASE)


def with_bars(lines: Sequence[str]) -> list[str]:
    """Returns the lines; those of a table that is written with tabs have bars between their cells instead.

    Two lines behind each other with as many tabs between their cells are rows of such a table; a tab behind the number
    of an item makes no cell.
    """
    bare = [_MARK.sub(r"\1 ", line.strip("\r\n ")) for line in lines]
    tabs = [0 if "|" in line else line.count("\t") for line in bare]
    beside = [count in (*tabs[max(n - 1, 0) : n], *tabs[n + 1 : n + 2]) for n, count in enumerate(tabs)]
    return [
        own.replace("\t", " | ") if count and is_row else line
        for line, own, count, is_row in zip(lines, bare, tabs, beside, strict=True)
    ]


def body(lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines; of a table, one line for each row below its head, which begins with a bar."""
    table: list[list[str]] = []
    for line in [*lines, ""]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "|" in line and (not table or len(cells) == len(table[0])):
            table.append(cells)
            continue
        yield from _rows(table)
        table = [cells] if "|" in line else []
        if not table and line.strip():
            yield line
    yield from _rows(table)


def _rows(table: Sequence[Sequence[str]]) -> list[str]:
    is_framed = len(table) > 1 and _is_frame(table[1])
    rows = [row for row in table if not _is_frame(row)]
    if len(rows) < 2:
        return [" ".join(row) for row in rows]
    head, *rest = rows
    if not is_framed and not any((words := _words_of(name)) and words <= HEADS for name in head):
        rest = rows  # nothing shows that the first row names the columns, and what it says must not be lost
    situation, action = _named(head, SITUATIONS), _named(head, ACTIONS)
    if action is None or action == situation:
        others = [n for n in range(len(head)) if n != situation]
        action = max(others, key=lambda n: (sum(len(row[n].split()) for row in rest), -n))
    return [f"|{_in_situation(row[action], row[situation] if situation is not None else '')}" for row in rest]


def _is_frame(row: Sequence[str]) -> bool:
    return all(_FRAME.match(cell) or not cell for cell in row)


def _named(head: Sequence[str], known: frozenset[str]) -> int | None:
    """Returns the only column whose name is or ends with a known word: "Action", "What is to be done"."""
    words = [re.findall(r"[a-z]+", name.casefold()) for name in head]
    found = [n for n, of_name in enumerate(words) if of_name and not known.isdisjoint({of_name[0], of_name[-1]})]
    return found[0] if len(found) == 1 else None


def _in_situation(action: str, situation: str) -> str:
    """Returns a row as a sentence: "If smoke or fire: call the brigade"."""
    told = situation.strip(" .?:;,")
    if not told or _ALWAYS.match(told):
        return action
    condition = told if _BEGINS_SUBORDINATE.match(told) else f"If {told}"
    return f"{condition}: {action.replace(';', ',')}"


_ASKED = re.compile(r"^\s*(?:[*_#>-]+\s*)?(?:Q|Question)\s?\d*\s*[:.)]\s*(?P<text>.+?)[*_]*\s*$", re.IGNORECASE)
_ANSWER = re.compile(r"^\s*(?:[*_>-]+\s*)?(?:A|Answer)\s?\d*\s*[:.)][*_]*\s*(?P<text>.+)$", re.IGNORECASE)
_WHAT_IF = re.compile(r"^(?:and\s+)?(?:what|how)\b[^?]*?\s(?P<condition>(?:if|when)\s[^?]+)\?$", re.IGNORECASE)
_WHO = re.compile(r"^who\s", re.IGNORECASE)
_INVERTED = re.compile(r"^(?:do|does|must|should|shall|can|may|will)\s+(?=\w+\s)", re.IGNORECASE)
_SHORT = re.compile(r"^(?P<said>yes|no|always|never|not always)\b\s*(?P<end>[,.:!;–-]|$)\s*", re.IGNORECASE)


def answered(lines: Sequence[str]) -> list[str]:
    """Returns the lines, where each marked question stands as what it and its answer say together.

    A text without answers that are marked as such is returned as it is.
    """
    if not any(_ANSWER.match(line) for line in lines) or not any(_ASKED.match(line) for line in lines):
        return list(lines)
    found: list[str] = []
    question = ""
    for line in lines:
        if match := _ASKED.match(line):
            asked = re.findall(r"[^.!?]+[.!?]?", match["text"])  # "A notice came in. What do I do?"
            question = asked[-1].strip()
            if _WHO.match(question):
                found.append(f"{question.rstrip('? ')}.")
            found.append("")
        elif match := _ANSWER.match(line):
            found.append(_together(question, match["text"].strip()))
            question = ""
        else:
            found.append(line)
    return found


def _together(question: str, answer: str) -> str:
    if condition := _WHAT_IF.match(question):
        told = re.sub(r"^then\s+", "", answer, flags=re.IGNORECASE)
        return f"{condition['condition'][0].upper()}{condition['condition'][1:]}, {told}"
    short = _SHORT.match(answer)
    if short is None or _WHO.match(question):
        return answer
    rest = answer[short.end() :]
    if short["said"].casefold() in ("yes", "always") and not rest:
        return _INVERTED.sub("", question.rstrip("? "))
    return rest


LEAST_WORDS = 3  # of a sentence of prose
WRAPPED = 60  # characters of a line from which on an editor may have wrapped it
LABEL_WORDS = 4  # of a label before a colon or a dash: "VPN certificate: revoke"
LEAST_LISTED = 2  # of an item of a list or of a table, which says briefly what is done
_ENDS = re.compile(r"(?<=[.!])\s+|(?<=;)\s+(?!(?:it|they)\s)")  # of the sentences of a line
_WORD = re.compile(r"\w+")
_ITEM = re.compile(
    r"^\s*(?:[*•\-–+◦▪]\s+\[[ xX]?\]|\[[ xX]?\]|[*•\-–+◦▪☐☑☒✓]|\(?\d+[.)]|\d+(?:\.\d+)+[.)]?|"
    r"\(?[a-z][.)]|step\s+\d+\s*[-–:.)]?)\s+",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"^\s*(\d+(?:\.\d+)*)[.)]?\s")
_WIKI_HEADING = re.compile(r"^h[1-6]\.\s")
_NEGATIVE = re.compile(
    r"(?:\bnot|n't)\b(?! forget| fail| omit)|\b(?:never|no longer|cannot|instead of|rather than)\b|"
    r"^(?:no|nothing|nobody|none|neither|nor(?=\s+(?:is|are|may|must|shall|should|can|will|does?)\b))\b|"
    r"\bno more\s+\w+ing\b|"
    r"\b(?:under|in|on|at) no (?:circumstances?|conditions?|case|account|time|event)\b|\bby no means\b|"
    r"\b(?:is|are|be|remains?) (?:\w+ly )?(?:forbidden|prohibited|banned)\b",
    re.IGNORECASE,
)
# Such words deny what narrows a thing, and not what is done: "parcels that are not labelled are sent back".
_NARROWS = re.compile(
    r"\b(?:that|which|who)\s+(?:(?:is|are|was|were|has|have|had|do|does|did|can|could|will)\s+)?"
    r"(?:not|never|no longer)\b|"
    r"(?<!\w)(?!(?:is|are|was|were|be|been|must|shall|should|may|might|can|could|will|would|do|does|did|has|have|had|need|"
    r"ought|it|and|but|or|please|also|still|yet)\b)[a-z]+\s+not\s+(?:yet\s+)?[a-z]+(?:ed|en)\b"
    r"(?=.*\s(?:is|are|must|shall|should|has|have|may|can|will)\s)",
    re.IGNORECASE,
)
# What minutes and letters report of what was not decided: a person has to say whether it holds.
_UNDECIDED = re.compile(
    r"\b(?:was|were|has been|have been) (?:\w+ly )?(?:discussed|raised|suggested|proposed|considered|dropped|abandoned|"
    r"abolished|discontinued|scrapped|postponed|deferred)\b(?! with\b)|"
    r"\b(?:raised|asked|wondered|discussed|unclear|undecided|unsure|open) (?:if|whether)\b|\bno decision\b",
    re.IGNORECASE,
)
# A clause that takes back a prohibition which stands before it in its sentence.
_CONTRARY = re.compile(r"^(but|instead|otherwise|else)\b", re.IGNORECASE)
_ALTERNATIVE = re.compile(r"^(or\s+)?(otherwise|else|if not|failing (?:which|that|this))\b", re.IGNORECASE)
_SUBORDINATE = re.compile(
    r"^(only\s+)?(if|when|whenever|while|once|as soon as|as long as|because|since|until|unless|"
    r"(?:after|before)(?!\s+(?:it|this|that|which|then)\b)|in case|provided|where|although|so that|"
    r"except\s+(?:where|if|when|in|for)|"
    r"(?<=only )(?:for|in|with)|should\s+(?:a|an|the|this|any|there)\b)\b",
    re.IGNORECASE,
)
# What a step waits for is a step itself where it is done by somebody: "before the bill is paid", "after weighing it".
_WAITS = re.compile(r"^(?:only\s+)?(after|before|until|once|as soon as)\s+(.*)$", re.IGNORECASE)
_GERUND = re.compile(r"^(?:having\s+\w+|\w{2,}ing)\s+(?:\w+)", re.IGNORECASE)
_NAMED = frozenset({"after", "before"})
_CUTS = re.compile(
    r"(\s*(?:[,:](?!\d)|[;()?])\s*(?:and\s+then|and|then|but)?\s*|\s+(?:and\s+then|and\s+also|as\s+well\s+as|and|but)\s+|"
    r"\s+[/–-]\s+|\s+[+&]\s+(?=(?-i:[a-z]{2,})))",
    re.I,
)
# Where a clause that says what a step waits for begins in the middle of another one.
_INNER = re.compile(
    r"\s(?=(?:after|before|until|once|as soon as)\s+(?:\w+ing\s+\w|(?:\w+\s+){1,5}(?:is|are|was|were|has|have)\s))",
    re.I,
)
_THEN = re.compile(r"^\s*,\s*(?:and|then|and\s+then)\s*$", re.IGNORECASE)
_SPEAKER = re.compile(r"\s(?=(?:we|you|they)\s+\w)", re.IGNORECASE)  # begins the main clause where no comma does
# "The letter is written and stamped": the second clause has the subject of the first one.
_PASSIVE = re.compile(
    r"^(.*?)\s(?:is|are|was|were|gets?|got|has been|have been|"
    r"(?:must|shall|will|should|may|can)(?: not)?(?: to)? be)\s",
    re.I,
)
_PRONOUN = re.compile(r"^(?:it|they)\s+(?=(?:is|are|was|were|has|have|must|shall|will|should|may|can)\s)", re.I)
_ALONE = re.compile(r"^(?:then\s+|also\s+)?\w+(?:ed|en|t|ne|wn|de|nt|ld|ght)\b[^|]*$", re.I)


@dataclass(frozen=True)
class Statement:
    """A clause of a procedure, in its words.

    `full` has also the subject that the clause shares with the one before it. `is_negative`: it forbids something.
    `is_alternative`: it holds where what was said before does not. `is_condition`: it says when something is done.
    `is_fact`: it states what is. `is_awaited`: it is a condition that says what a step waits for, which is done, too.
    `only_if`: the condition under which it asks for a step, in the procedure's words; "" where it has none.
    """

    text: str
    full: str
    is_negative: bool = False
    is_alternative: bool = False
    is_condition: bool = False
    is_fact: bool = False
    is_awaited: bool = False
    only_if: str = ""

    @property
    def asks(self) -> bool:
        """Tells whether it may ask for a step."""
        return not (self.is_negative or self.is_alternative or self.is_condition or self.is_fact)

    @property
    def is_named(self) -> bool:
        """Tells whether it is named where no step stands for it, although it is a condition: a step is done before."""
        return self.is_awaited and bool((match := _WAITS.match(self.text)) and match[1].casefold() in _NAMED)

    @property
    def may_name(self) -> bool:
        """Tells whether it may only name a step, with all words of its name: a fact, or what another step waits for."""
        return (self.is_fact or self.is_awaited) and not (self.is_negative or self.is_alternative)


def prose_sentences(text: str) -> list[str]:
    """Returns the sentences of a procedure in prose, without headings and frames, that have enough words.

    Of a table, each row says what is done in it (`body`); of questions with answers, see `answered`.
    """
    found = []
    lines = list(body(_unwrapped(_untitled("\n".join(answered(with_bars(text.splitlines())))))))
    heads = _numbered_heads(lines)
    kept = [line for n, line in enumerate(lines) if n not in heads and not _is_heading(line)]
    for line in kept or lines:  # headings alone are all that there is
        item = _ITEM.match(line)
        least = LEAST_LISTED if item or line.startswith("|") else LEAST_WORDS
        told = (line[item.end() :] if item else line.lstrip("|")).strip()
        pieces = [s.strip() for s in _ENDS.split(told)]
        # "Vessel alongside; NOR tendered": such a part says briefly what is done.
        parts = [
            ";" in (s[-1:], before[-1:]) and any(map(is_participle, _WORD.findall(s.casefold())))
            for before, s in zip(["", *pieces], pieces, strict=False)
        ]
        found += [
            s
            for s, is_part in zip(pieces, parts, strict=True)
            if len(_WORD.findall(s)) >= (LEAST_LISTED if is_part else least)
        ]
    return found


def statements_of(sentence: str) -> list[Statement]:
    """Returns the clauses of one sentence, in its order; what another clause waits for stands before that clause."""
    if is_label(sentence):
        return [Statement(sentence, sentence, is_fact=True)]
    found: list[Statement] = []
    subject, label, negative, alternative, condition, undecided = "", "", False, False, False, False
    cut = list(_cut(sentence))
    for n, (joint, clause) in enumerate(cut):
        is_joined = not joint.strip(" ").startswith((",", ";", ":", "(", ")"))  # by "and" alone
        # "The bed is not made until he has left" asks for the bed.
        waits = any((m := _WAITS.match(other)) and m[1].casefold() == "until" for _, other in cut[n + 1 : n + 2])
        is_forbidden = bool(_NEGATIVE.search(_NARROWS.sub(" ", clause))) and not waits
        is_contrary = bool(_CONTRARY.match(clause) or _CONTRARY.match(joint.strip(" ,;")))
        negative = is_forbidden or (negative and is_joined and not is_contrary)
        alternative = alternative or bool(_ALTERNATIVE.match(clause))
        undecided = bool(_UNDECIDED.search(clause)) or (undecided and is_joined)
        # "If it is complete and the fee is paid, ...": both clauses are conditions where a comma ends them.
        goes_on = condition and is_joined and any("," in other for other, _ in cut[n + 1 :])
        asked = any(other.lstrip().startswith("?") for other, _ in cut[n + 1 : n + 2])
        is_scope_ahead = n == 0 and n + 1 < len(cut) and cut[n + 1][0].strip().startswith(",") and is_scope_of(clause)
        condition = bool(_SUBORDINATE.match(clause)) or goes_on or asked or is_scope_ahead
        clause += "?" if asked else ""
        passive, full = _PASSIVE.match(f"{clause} "), clause
        if subject and _PRONOUN.match(clause):
            full = f"{subject} {_PRONOUN.sub('', clause)}"
        elif passive and not condition:
            subject = passive[1]
        elif subject and (is_joined or _THEN.match(joint)) and _ALONE.match(clause):
            full = f"{subject} {clause}"
        if n and cut[n - 1][1] == label and not negative and not condition:
            full = f"{label} {full}"  # "Mailbox: forward to the manager"
            found = [s for s in found if s.text != label]
        is_last = n + 1 == len(cut) or not cut[n + 1][0].strip().startswith((":", "-", "–"))
        label = clause if n == 0 and not is_last and not condition and len(clause.split()) <= LABEL_WORDS else ""
        if alternative and not _ALTERNATIVE.match(clause):
            clause = f"otherwise {clause}"
        is_bare = len(clause.split()) == 1 and not condition and not _ALTERNATIVE.match(clause)
        if is_bare and subject and clause.endswith("ed"):
            full = f"{subject} {clause}"  # "the parcel is weighed, labelled, and sent"
        elif is_bare and (shared := _object_behind(cut[n + 1 :])):
            full = f"{clause} {shared}"  # "labelling and weighing the sample"
        # "Never collect the fee before the bill is written" says an order, and not that there is a fee.
        awaited = condition and _is_awaited(clause) and not (n and found and found[-1].is_negative)
        forbids = negative and not condition
        in_brackets = joint.strip().startswith("(")
        is_whole = not any(other.lstrip().startswith((":", ",")) for other, _ in cut[n + 1 : n + 2])
        if in_brackets and is_whole and found and found[-1].asks and is_scope(clause):
            found[-1] = replace(found[-1], only_if=f"only for {clause}")  # "Device shipped (device trials)"
            continue
        is_told = not condition and (is_fact(full) or (in_brackets and (is_role(clause) or is_reference(clause))))
        subject = (subject_of(full) if is_told else "") or subject
        found.append(Statement(clause, full, forbids, alternative or undecided, condition, is_told, awaited))
    found = _in_time(_with_conditions(found))
    found = [s for s in found if _is_told(s)]
    # In "After this the doctor examines the animal" no main clause follows, so the clause itself asks for the step.
    return found if any(not s.is_condition for s in found) else [replace(s, is_condition=False) for s in found]


def _is_told(statement: Statement) -> bool:
    """Tells whether a statement says something: has two words, or is one participle ("sealed")."""
    words = _WORD.findall(statement.full)
    return (len(words) > 1 and not _ALTERNATIVE.fullmatch(statement.text)) or bool(words and words[0].endswith("ed"))


def _object_behind(clauses: Sequence[tuple[str, str]]) -> str:
    """Returns the words behind the verb of the next clause that has any, where it is joined by "and" or a comma."""
    for joint, clause in clauses:
        if not re.match(r"^\s*(?:,|,?\s*(?:and|then|and\s+then))\s*$", joint, re.IGNORECASE):
            return ""
        if _SUBORDINATE.match(clause) or _ALTERNATIVE.match(clause):
            return ""
        if len(clause.split()) > 1:
            return clause.split(maxsplit=1)[1]
    return ""


def _is_awaited(clause: str) -> bool:
    """Tells whether a subordinate clause says that something has been done by somebody, or names an action."""
    match = _WAITS.match(clause)
    return bool(match and (_PASSIVE.match(f"{match[2]} ") or _GERUND.match(match[2])))


def _with_conditions(statements: Sequence[Statement]) -> list[Statement]:
    """Returns the statements with their conditions: of those behind a condition, or of the one before the last one."""
    told, condition = list(statements), ""
    for n, statement in enumerate(statements):
        if statement.is_condition and is_conditional(statement.text):
            if any(s.asks for s in statements[n + 1 :]):
                condition = statement.text
            elif n and told[n - 1].asks:
                told[n - 1] = replace(told[n - 1], only_if=statement.text)
        elif statement.asks:
            told[n] = replace(statement, only_if=condition or statement.only_if or own_condition(statement.full))
    return told


def _in_time(statements: Sequence[Statement]) -> list[Statement]:
    """Returns the statements with what waits behind what it waits for: "file it after weighing it" weighs it first."""
    ordered: list[Statement] = []
    later: list[Statement] = []
    for statement in statements:
        match = _WAITS.match(statement.text) if statement.is_awaited else None
        is_before = bool(match and match[1].casefold() == "before")
        if is_before and not ordered:
            later.append(statement)
        elif match and not is_before and ordered and ordered[-1].asks:
            ordered.insert(len(ordered) - 1, statement)
        else:
            ordered.append(statement)
    return [*ordered, *later]


def _cut(sentence: str) -> Iterator[tuple[str, str]]:
    """Yields each clause with what joins it to the one before."""
    pieces = ["", *_CUTS.split(sentence)]
    for joint, piece in zip(pieces[::2], pieces[1::2], strict=True):
        main = _SPEAKER.split(piece, maxsplit=1) if _SUBORDINATE.match(piece) else [piece]
        main = [part for clause in main for inner in _INNER.split(clause) for part in inner_parts(inner)]
        for place, clause in enumerate(c.strip(" .!?/") for c in main):
            if _WORD.search(clause):
                yield (", " if place else joint), clause


def _untitled(text: str) -> list[str]:
    """Returns the lines without short ones that stand alone above a longer paragraph: they are its title."""
    lines = text.strip("\n").splitlines()
    items = [n for n, line in enumerate(lines) if line.strip() and _is_item(line)]
    if items and 2 * len(items) >= sum(bool(line.strip()) for line in lines):  # of a list, what stands above it
        lines = [line for n, line in enumerate(lines) if n > items[0] or not _is_short(line)]
        text = "\n".join(lines)
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text.strip("\n"))]
    titles = [len(block) == 1 and _is_short(block[0]) for block in blocks]
    heads = {n for n, is_title in enumerate(titles[:-1]) if is_title and not titles[n + 1]}
    return [line for n, block in enumerate(blocks) if n not in heads for line in [*block, ""]]


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """Returns the lines; one that goes on in lower case after a long line without an end is joined to that."""
    kept: list[str] = []
    for line in lines:
        before = kept[-1].rstrip() if kept else ""
        is_cut = len(before) >= WRAPPED and "|" not in before and not before.endswith((".", "!", "?", ";", ":"))
        if is_cut and line.strip()[:1].islower() and not _is_item(line):
            kept[-1] = f"{before} {line.strip()}"
        else:
            kept.append(line)
    return kept


def _numbered_heads(lines: Sequence[str]) -> set[int]:
    """Returns the places of numbered lines whose number the next line goes on with: 2 before 2.1."""
    numbers = [match[1] if (match := _NUMBER.match(line)) else "" for line in lines]
    return {n for n, number in enumerate(numbers[:-1]) if number and numbers[n + 1].startswith(f"{number}.")}


def _is_short(line: str) -> bool:
    bare = line.strip()
    return 0 < len(bare.split()) <= ALONE_WORDS and not bare.endswith((".", "!", "?", ";", ",")) and not _is_item(bare)


def _is_item(line: str) -> bool:
    return "|" in line or bool(_ITEM.match(line))


def _is_heading(line: str) -> bool:
    bare = line.strip()
    return (
        bare.startswith("#")
        or bool(_WIKI_HEADING.match(bare))
        or (bare.startswith("**") and bare.endswith("**"))
        or bare.endswith(":")
    )
