#!/usr/bin/env python3
"""Precision and recall of the reader of rules on the labelled procedures of tests/intakes/requirements/procedures.

    .venv/bin/python benchmarks/rules.py [--part heldout|second|tuning|sample] [--errors] [--by style|kind]

A rule is right when its kind, its arguments and its condition are those of a label
(tests/intakes/requirements/procedures/README.md says how it is labelled). `--errors` prints what was missed and what
was read in vain; use it with the tuning part only, or the held-out parts are spent.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.requirements.rules import read_rules
from opus_pipelines.language.grammar.statements import Condition, ProcedureStatement
from opus_pipelines.language.word_stems import stems, within

FOLDER = Path(__file__).parents[1] / "tests" / "intakes" / "requirements" / "procedures"
TIGHT = (
    "checklist",
    "table",
)  # styles whose sentences stand on adjacent lines; the others have blank lines between them
FURTHER_WORDS = 6  # content words that a phrase may have beside the core words of its label
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}

Label = dict[str, Any]


@dataclass
class Score:
    """Counts over sentences, and the errors as text.

    `found`: labelled rules that were read; `right`: read rules with a label.
    """

    labelled: int = 0
    found: int = 0
    read: int = 0
    right: int = 0
    errors: list[str] = field(
        default_factory=list, repr=False
    )  # a failing test must not show those of the held-out parts

    @property
    def precision(self) -> float:
        """The share of read rules that have a label; 1 where no rule was read."""
        return self.right / self.read if self.read else 1.0

    @property
    def recall(self) -> float:
        """The share of labelled rules that were read; 1 where there are no labels."""
        return self.found / self.labelled if self.labelled else 1.0


def rows_of(part: str) -> list[dict[str, Any]]:
    """The labelled sentences of a part."""
    return [json.loads(line) for line in (FOLDER / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()]


def read_procedure(sentences: Sequence[str], style: str) -> list[list[ProcedureStatement]]:
    """Returns the statements that the reader reads in a procedure, by sentence.

    The sentences form one document, so that headings and tables are recognised as in real work.
    """
    gap = "\n" if style in TIGHT else "\n\n"
    step = len(gap)
    element = Element("p", "process", "text", "procedure.txt", "text/plain", gap.join(sentences), 0, "", None)
    found: list[list[ProcedureStatement]] = [[] for _ in sentences]
    for rule in read_rules(element):
        line = int(rule.sentence.place.rpartition("line ")[2])
        found[(line - 1) // step] += rule.statements
    return found


def matches(label: Label, said: ProcedureStatement) -> bool:
    """Whether the statement is what the label says."""
    if said.kind in label["kind"].split("|"):
        return _arguments(label, said) and _conditions(label, said.conditions)
    texts = [c.text for c in said.conditions if c.text]
    if label["kind"] == "response" and said.kind == "existence" and len(said.conditions) == 1 and texts:
        return _names(texts[0], label["a"]) and _names(said.a, label["b"])
    if label["kind"] == "precedence" and said.kind == "absence" and len(texts) == 1 and said.conditions[0].negated:
        return _names(texts[0], label["a"]) and _names(said.a, label["b"])
    if (
        label["kind"] == "existence"
        and said.kind == "response"
        and "text" in label.get("if", {})
        and not said.conditions
    ):
        return _names(said.a, label["if"]["text"]) and _names(said.b, label["a"])
    return False


def _arguments(label: Label, said: ProcedureStatement) -> bool:
    kind = said.kind
    if kind == "choice":
        return len(said.options) == len(label["options"]) and all(
            any(_names(o, want) for o in said.options) for want in label["options"]
        )
    if kind in ("precedence", "response", "succession"):
        return _names(said.a, label["a"], label["b"]) and _names(said.b, label["b"], label["a"])
    if kind in ("deadline", "limit"):
        same = said.amount == label["amount"] and _unit(said.unit) == _unit(label["unit"])
        same = same and (said.calendar == label["calendar"] if kind == "deadline" else said.op == label["op"])
        return same and (not said.a if label["a"] is None else _names(said.a, label["a"]))
    return _names(said.a, label["a"])


def _names(phrase: str, core: str, other: str = "") -> bool:
    """The phrase has the core words, and is neither both arguments in one nor the whole sentence."""
    words, wanted = stems(phrase), stems(core)
    lumped = bool(other) and within(stems(other), words) and not set(stems(other)) <= set(wanted)
    return within(wanted, words) and not lumped and len(words) <= len(wanted) + FURTHER_WORDS


def _conditions(label: Label, said: Sequence[Condition]) -> bool:
    wanted = [(label[key], key == "unless") for key in ("if", "unless") if key in label]
    return len(wanted) == len(said) and all(any(_condition(want, unless, c) for c in said) for want, unless in wanted)


def _condition(want: Label, unless: bool, said: Condition) -> bool:
    if "text" in want:
        return bool(said.text) and said.negated == unless and _names(said.text, want["text"])
    op = OPPOSITE[said.op] if said.op and said.negated != unless else said.op
    return (op, said.amount, _unit(said.unit)) == (want["op"], want["amount"], _unit(want["unit"]))


def _unit(unit: str) -> str:
    return unit if unit.isupper() else unit.removesuffix("s")


def entailed(labels: Sequence[Label], said: ProcedureStatement) -> bool:
    """An existence that a label of order or of time contains: not asked for, and no error."""
    phrases = [label.get(k) for label in labels for k in ("a", "b") if label["kind"] not in ("existence", "absence")]
    return said.kind == "existence" and any(phrase and _names(said.a, phrase) for phrase in phrases)


def score(part: str, key: str | None = None) -> dict[str, Score]:
    """Scores of a part: all of it under "all", and by the value of `key` (style, industry, procedure) or by kind."""
    scores: dict[str, Score] = defaultdict(Score)
    rows = rows_of(part)
    for procedure in dict.fromkeys(r["procedure"] for r in rows):
        own = [r for r in rows if r["procedure"] == procedure]
        for row, said in zip(own, read_procedure([r["sentence"] for r in own], own[0]["style"]), strict=True):
            _count(row, said, scores, key)
    return dict(scores)


def _count(row: dict[str, Any], said: list[ProcedureStatement], scores: dict[str, Score], key: str | None) -> None:
    labels, left = row["rules"], list(said)
    group = lambda kind: [scores["all"]] + ([scores[kind if key == "kind" else row[key]]] if key else [])
    where = f"{row['procedure']} {row['style']}: {row['sentence']}"
    for label in sorted(labels, key=lambda one: bool(one.get("optional"))):
        hit = next((s for s in left if matches(label, s)), None)
        if hit is not None:
            left.remove(hit)
        if label.get("optional"):
            continue
        for one in group(label["kind"].split("|")[0]):
            one.labelled += 1
            one.found += hit is not None
            one.read += hit is not None
            one.right += hit is not None
            if hit is None:
                one.errors.append(f"missed   {where}\n           {json.dumps(label)}")
    for statement in left:
        if entailed(labels, statement):
            continue
        for one in group(statement.kind):
            one.read += 1
            one.errors.append(f"in vain  {where}\n           {statement}")


def main() -> None:
    """Prints precision and recall of the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("heldout", "second", "tuning", "sample"))
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--by", choices=("style", "kind", "industry", "procedure"))
    asked = parser.parse_args()
    for part in [asked.part] if asked.part else ("tuning", "heldout", "second", "sample"):
        rows = rows_of(part)
        none = sum(not r["rules"] for r in rows)
        print(
            f"{part}: {len(rows)} sentences of {len({r['procedure'] for r in rows})} procedures, {none} without a rule"
        )
        for name, one in sorted(score(part, asked.by).items(), key=lambda item: (item[0] != "all", item[0])):
            precision, recall = (
                f"{one.precision:.3f} ({one.right}/{one.read})",
                f"{one.recall:.3f} ({one.found}/{one.labelled})",
            )
            print(f"  {name:12} precision {precision}  recall {recall}")
            if asked.errors and name == "all":
                print("\n".join(f"    {line}" for line in one.errors))
        kinds = Counter(rule["kind"].split("|")[0] for r in rows for rule in r["rules"] if not rule.get("optional"))
        print("  labelled: " + ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()))


if __name__ == "__main__":
    main()
