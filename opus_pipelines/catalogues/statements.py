"""Cuts a procedure in prose into statements: clauses, each of which may ask for one step.

Headings, frames of tables and subordinate clauses ("when the owner arrives") ask for no step. A clause is marked where
it forbids something ("do not send the letter") or holds only where what was said before does not ("otherwise"). The
words are those of English procedures; the rules are this project's own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opus_pipelines.embedding.text_parts import ALONE_WORDS

LEAST_WORDS = 3  # of a sentence of prose
WRAPPED = 60  # characters of a line from which on an editor may have wrapped it
LEAST_LISTED = 2  # of an item of a list or of a table, which says briefly what is done
_ENDS = re.compile(r"(?<=[.!?;])\s+")  # of the sentences of a line
_WORD = re.compile(r"\w+")
_ITEM = re.compile(r"^\s*(?:[*•\-–+◦▪]\s+\[[ xX]?\]|\[[ xX]?\]|[*•\-–+◦▪☐☑☒✓]|\(?\d+[.)]|\(?[a-z][.)])\s+")
_FRAME = re.compile(r"^[\s|:+=-]+$")
_NEGATIVE = re.compile(
    r"(?:\bnot|n't)\b(?! forget| fail| omit)|\b(?:never|no longer|cannot|instead of|rather than)\b", re.IGNORECASE
)
# A clause that takes back a prohibition which stands before it in its sentence.
_CONTRARY = re.compile(r"^(but|instead|otherwise|else)\b", re.IGNORECASE)
_ALTERNATIVE = re.compile(r"^(or\s+)?(otherwise|else|if not)\b", re.IGNORECASE)
_SUBORDINATE = re.compile(
    r"^(only\s+)?(if|when|whenever|while|once|as soon as|as long as|because|since|until|unless|after|before|in case|"
    r"provided|where|although|so that)\b",
    re.IGNORECASE,
)
_CUTS = re.compile(
    r"(\s*[,;:()]\s*(?:and\s+then|and|then|but)?\s*|\s+(?:and\s+then|and\s+also|as\s+well\s+as|and|but)\s+)", re.I
)
_SPEAKER = re.compile(r"\s(?=(?:we|you|they)\s+\w)", re.IGNORECASE)  # begins the main clause where no comma does
# "The letter is written and stamped": the second clause has the subject of the first one.
_PASSIVE = re.compile(r"^(.*?)\s(?:is|are|was|were|has been|have been|(?:must|shall|will|should|may|can) be)\s", re.I)
_ALONE = re.compile(r"^(?:then\s+|also\s+)?\w+(?:ed|en|t|ne|wn|de|nt|ld|ght)\b[^|]*$", re.I)


@dataclass(frozen=True)
class Statement:
    """A clause of a procedure, in its words.

    `full` has also the subject that the clause shares with the one before it. `is_negative`: it forbids something.
    `is_alternative`: it holds where what was said before does not. `is_condition`: it says when something is done.
    """

    text: str
    full: str
    is_negative: bool = False
    is_alternative: bool = False
    is_condition: bool = False

    @property
    def asks(self) -> bool:
        """Tells whether it may ask for a step."""
        return not (self.is_negative or self.is_alternative or self.is_condition)


def sentences_of(text: str) -> list[str]:
    """Returns the sentences of a procedure in prose, without headings and frames, that have enough words.

    Of a table, the cells of the column with the most words are the sentences.
    """
    found = []
    lines = list(_body(_unwrapped(_untitled(text))))
    for line in [line for line in lines if not _is_heading(line)] or lines:  # headings alone are all that there is
        item = _ITEM.match(line)
        least = LEAST_LISTED if item or line.startswith("|") else LEAST_WORDS
        body = (line[item.end() :] if item else line.lstrip("|")).strip()
        found += [s.strip() for s in _ENDS.split(body) if len(_WORD.findall(s)) >= least]
    return found


def statements_of(sentence: str) -> list[Statement]:
    """Returns the clauses of one sentence, in its order."""
    found: list[Statement] = []
    subject, negative, alternative, condition = "", False, False, False
    cut = list(_cut(sentence))
    for n, (joint, clause) in enumerate(cut):
        is_joined = not joint.strip(" ").startswith((",", ";", ":", "(", ")"))  # by "and" alone
        negative = bool(_NEGATIVE.search(clause)) or (negative and is_joined and not _CONTRARY.match(clause))
        alternative = alternative or bool(_ALTERNATIVE.match(clause))
        # "If it is complete and the fee is paid, ...": both clauses are conditions where a comma ends them.
        goes_on = condition and is_joined and any("," in other for other, _ in cut[n + 1 :])
        condition = bool(_SUBORDINATE.match(clause)) or goes_on
        passive, full = _PASSIVE.match(f"{clause} "), clause
        if passive and not condition:
            subject = passive[1]
        elif subject and is_joined and _ALONE.match(clause):
            full = f"{subject} {clause}"
        if alternative and not _ALTERNATIVE.match(clause):
            clause = f"otherwise {clause}"
        found.append(Statement(clause, full, negative and not condition, alternative, condition))
    found = [s for s in found if len(_WORD.findall(s.full)) > 1]
    # In "After this the doctor examines the animal" no main clause follows, so the clause itself asks for the step.
    return found if any(not s.is_condition for s in found) else [replace(s, is_condition=False) for s in found]


def _cut(sentence: str) -> Iterator[tuple[str, str]]:
    """Yields each clause with what joins it to the one before."""
    pieces = ["", *_CUTS.split(sentence)]
    for joint, piece in zip(pieces[::2], pieces[1::2], strict=True):
        main = _SPEAKER.split(piece, maxsplit=1) if _SUBORDINATE.match(piece) else [piece]
        for place, clause in enumerate(c.strip(" .!?") for c in main):
            if _WORD.search(clause):
                yield (", " if place else joint), clause


def _untitled(text: str) -> list[str]:
    """Returns the lines without short ones that stand alone above a longer paragraph: they are its title."""
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


def _is_short(line: str) -> bool:
    bare = line.strip()
    return 0 < len(bare.split()) <= ALONE_WORDS and not bare.endswith((".", "!", "?", ";", ",")) and not _is_item(bare)


def _is_item(line: str) -> bool:
    return "|" in line or bool(_ITEM.match(line))


def _body(lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines; of a table, one line for each row below its header, which begins with a bar."""
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
    rows = [row for row in table if not all(_FRAME.match(cell) or not cell for cell in row)]
    if len(rows) < 2:
        return [" ".join(row) for row in rows]
    body = rows[1:]  # the first row names the columns
    words = [sum(len(row[n].split()) for row in body) for n in range(len(rows[0]))]
    most = words.index(max(words))
    return [f"|{row[most]}" for row in body]


def _is_heading(line: str) -> bool:
    bare = line.strip()
    return bare.startswith("#") or (bare.startswith("**") and bare.endswith("**")) or bare.endswith(":")
