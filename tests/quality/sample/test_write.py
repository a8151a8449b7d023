"""What is written: the same bytes for the same seed, the counts that were promised, files that parse."""

import json
import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.records.source_settings import load_source
from opus_pipelines.quality.sample import write_sample
from opus_pipelines.quality.sample.cases import draw_cases
from opus_pipelines.quality.sample.industries import read_industry
from tests.quality.sample.conftest import Written

CONSTRAINTS = {"max_cost_usd", "max_duration_hours", "min_success", "must_contain", "must_not_contain", "before"}


def contents(folder: Path) -> dict[str, bytes]:
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


@pytest.mark.long
def test_the_same_seed_gives_the_same_bytes(written: Any, tmp_path: Path) -> None:
    write_sample(tmp_path)
    assert contents(written.folder) == contents(tmp_path)


def test_another_seed_gives_other_cases_of_the_same_kinds() -> None:
    insurance = read_industry("insurance")
    kind = insurance.kinds["motor"][0]
    first, other = (draw_cases(seed, insurance.industry, "Motor Claims", kind) for seed in (0, 7))
    assert [c.description for c in first] != [c.description for c in other]
    assert len(first) == len(other) == 260


def test_counts(written: Written) -> None:
    s = written.summary
    assert (s.clients, s.industries, s.contracts, s.sources, s.cases, s.intakes) == (4, 3, 6, 5, 3080, 25)
    assert s.task_implementations == sum(len(case.rows) for case in written.cases)
    assert s.files == len(contents(written.folder))
    assert len(written.cases) == len({(c.source, c.case) for c in written.cases}) == 3080


def test_every_kind_of_case_is_there_as_often_as_the_truth_says(written: Written) -> None:
    kinds = {k["kind"]: k["cases"] for i in written.truth["industries"].values() for k in i["kinds"] if k["cases"]}
    assert Counter(c.title for c in written.cases) == kinds
    assert len(kinds) == 12
    assert min(c["cases"] for c in written.truth["contracts"]) >= 350


def test_each_contract_has_an_intake_of_a_kind_that_no_case_combined(written: Written) -> None:
    truth = written.truth["industries"]
    unseen = {
        k["kind"]: (set(k["always"]), industry, k["needed"])
        for industry, i in truth.items()
        for k in i["kinds"]
        if not k["cases"]
    }
    asked = [i for i in written.truth["intakes"] if i["kind"] in unseen]
    assert len(unseen) == 6
    assert {(i["client"], i["contract"]) for i in asked} == {
        (c["client"], c["contract"]) for c in written.truth["contracts"]
    }
    for tasks, industry, needed in unseen.values():
        seen = [set(k["always"]) for k in truth[industry]["kinds"] if k["cases"]]
        assert not any(tasks <= other for other in seen)
        assert {n["task"] for n in needed} <= set().union(*seen)
        assert not any({n["task"] for n in needed} <= other for other in seen)


def test_two_contracts_share_one_source_by_a_column(written: Written) -> None:
    assert Counter(c.contract for c in written.cases if c.source == "harbourline_claims") == {
        "Motor Claims": 530,
        "Home Claims": 510,
    }


def test_few_distinct_texts_are_to_be_embedded(written: Written) -> None:
    texts = {(c.title, c.description) for c in written.cases}
    assert 300 < len(texts) < 800
    assert all(15 <= len(description.split()) <= 45 for _, description in texts)


def test_instructions_hold_newlines_in_the_csv(written: Written) -> None:
    rows = [r for c in written.cases if c.source == "brightwater_expenses" for r in c.rows]
    assert any("\n" in r.instructions for r in rows)
    assert all("\n" in c.description for c in written.cases if c.title == "Company card statement")


def test_schedule_events_stand_in_one_log_only(written: Written) -> None:
    events = {f.name: f.read_text().count('value="schedule"') for f in written.folder.rglob("*.xes")}
    assert events == {"visits.xes": 0}


def test_tasks_overlap_in_time_and_never_end_before_they_start(written: Written) -> None:
    rows = [pair for c in written.cases for pair in pairwise(c.rows)]
    assert all(a.start < a.end and a.start < b.start for a, b in rows)
    assert sum(b.start < a.end for a, b in rows) > 500


def test_intakes_have_documents_in_each_role(written: Written) -> None:
    folder = written.folder / "intakes"
    intakes = sorted(p.parent for p in folder.rglob("intake.toml"))
    assert len(intakes) == 25
    for intake in intakes:
        tomllib.loads((intake / "intake.toml").read_text())["received_at"]
        assert all(any((intake / role).iterdir()) for role in ("input", "output", "process"))
    assert {p.suffix for p in folder.rglob("*.*") if p.is_file()} == {".toml", ".md", ".txt", ".csv", ".json"}
    for path in folder.rglob("*.json"):
        json.loads(path.read_text())


def test_the_readers_know_every_key_of_the_source_settings(written: Written) -> None:
    for folder in sorted((written.folder / "history").iterdir()):
        settings = load_source(folder)
        assert settings.industry in written.truth["industries"]
        assert settings.success.column


def test_contracts_agree_with_the_truth(written: Written) -> None:
    told = {(c["client"], c["contract"]): c for c in written.truth["contracts"]}
    files = [tomllib.loads(p.read_text()) for p in sorted((written.folder / "intakes").rglob("contract.toml"))]
    assert {(f["client"], f["contract"]) for f in files} == set(told)
    for f in files:
        truth = told[f["client"], f["contract"]]
        assert (f["gain_usd"], f["industry"]) == (truth["gain_usd"], truth["industry"])
        assert f["constraints"].keys() <= CONSTRAINTS
    assert all((written.folder / i["path"] / "intake.toml").is_file() for i in written.truth["intakes"])
    kinds = {k["kind"] for i in written.truth["industries"].values() for k in i["kinds"]}
    assert {i["kind"] for i in written.truth["intakes"]} == kinds
    assert {i["intake"]: i["kinds"] for i in written.truth["intakes"] if len(i["kinds"]) > 1} == {
        "2025-09-15-two-losses": ["Burglary claim", "Water damage claim"],
    }


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="taken"):
        write_sample(tmp_path / "taken")
