"""The campaign of hidden text: 166 documents of eleven types for each seed, and what is left out of each."""

from collections import Counter
from pathlib import Path

import pytest

from opus_pipelines.intakes.elements import read_elements
from opus_pipelines.intakes.requirements.rules import rules_of
from tests.campaigns.hidden_text import RULE, SEEN, Hidden, Maker

SEEDS = 10


WORDS = ("survey", "coverage")  # of the hidden rule and of the one that is seen
LABELLED = ("json", "xml", "csv", "xlsx", "a hidden field")  # read, but not made a rule in this form


def reading(folder: Path, name: str, data: bytes) -> tuple[set[str], set[str], str]:
    """Which of the two sentences a procedure says, which of them set something, and what of it was left out."""
    place = folder / "process"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    (place / name).write_bytes(data)
    elements = read_elements(folder, folder / "none")
    said = " ".join(rule.sentence.text for rule in rules_of(elements) for d in rule.demands if not d.no_effect_reason)
    read = " ".join(e.text or "" for e in elements)
    return (
        {word for word in WORDS if word in read},
        {word for word in WORDS if word in said},
        "; ".join(e.left_out or "" for e in elements),
    )


def fault(folder: Path, one: Hidden) -> str | None:
    """What is wrong with how a document is read, or None."""
    is_labelled = one.kind in LABELLED or one.way in LABELLED
    read, sets, left_out = reading(folder, one.name, one.hidden)
    if read != {"coverage"} or (sets != {"coverage"} and one.kind not in LABELLED):
        return f"of the hidden document {sorted(read)} is read, and {sorted(sets)} set something"
    if not left_out:
        return "the hidden document says nothing of what was left out"
    read, sets, _ = reading(folder, one.name, one.shown)
    return None if "survey" in (read if is_labelled else sets) else "the rule that is shown sets nothing"


def run(folder: Path, documents: list[Hidden]) -> list[str]:
    """The faults of a campaign; its table is printed."""
    faults = {f"{one.kind}, {one.way}": said for one in documents if (said := fault(folder, one)) is not None}
    ways = {one.kind: {two.way for two in documents if two.kind == one.kind} for one in documents}
    counts = Counter(one.kind for one in documents)
    print("\ntype | ways | documents | faults")
    for kind, count in counts.items():
        print(f"{kind} | {len(ways[kind])} | {count} | {sum(name.startswith(f'{kind}, ') for name in faults)}")
    print(f"all | {sum(map(len, ways.values()))} | {len(documents)} | {len(faults)}")
    return [f"{name}: {said}" for name, said in faults.items()]


@pytest.mark.long
def test_hidden_text_sets_nothing_and_is_named(tmp_path: Path) -> None:
    assert run(tmp_path, list(Maker(0).all())[::5]) == []


@pytest.mark.nightly
def test_hidden_text_sets_nothing_in_any_way(tmp_path: Path) -> None:
    documents = [one for seed in range(SEEDS) for one in Maker(seed).all()]
    assert len({one.kind for one in documents}) == 11
    assert len(documents) >= 1_000
    assert run(tmp_path, documents) == []


def test_the_documents_of_a_seed_are_the_same_each_time() -> None:
    assert list(Maker(3).html()) == list(Maker(3).html()) != list(Maker(4).html())
    assert all(SEEN.encode() in one.hidden and RULE.encode() in one.shown for one in Maker(3).pdf())
