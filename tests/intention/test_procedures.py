"""The labelled procedures themselves: enough of them, of every style and kind, in two parts that share nothing."""

import json
from collections import Counter
from pathlib import Path

from opus_pipelines.intention.stated import KINDS

FOLDER = Path(__file__).parent / "procedures"


def rows(part):
    return [json.loads(line) for line in (FOLDER / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()]


def test_there_are_enough_labelled_sentences_and_a_third_state_no_rule():
    both = rows("tuning") + rows("heldout")
    assert (len(both), len({r["procedure"] for r in both}), len({r["style"] for r in both})) == (469, 42, 10)
    assert sum(not r["rules"] for r in both) == 173


def test_the_parts_share_no_procedure_and_no_sentence_and_have_every_style_and_kind():
    for key in ("procedure", "industry", "sentence"):
        assert not {r[key] for r in rows("tuning")} & {r[key] for r in rows("heldout")}
    assert {r["style"] for r in rows("tuning")} == {r["style"] for r in rows("heldout")}
    for part in ("tuning", "heldout"):
        kinds = Counter(rule["kind"].split("|")[0] for r in rows(part) for rule in r["rules"])
        assert set(kinds) == set(KINDS)
