"""Names, identities and ids without Spark."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.wkg.resolve import SourceNames, ledger_table, normalise, resolve


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("RegisterClaim", "register claim"),
        ("register_claim", "register claim"),
        ("  Register -- CLAIM. ", "register claim"),
        ("Évaluer le dégât", "evaluer le degat"),
        ("XMLFile2Parse", "xml file2 parse"),
        ("Straße", "strasse"),
        ("登録", "登録"),
        ("***", "***"),
    ],
)
def test_normalise(title: str, expected: str) -> None:
    assert normalise(title) == expected


@given(st.text(min_size=1))
@settings(max_examples=200)
def test_normalising_folds_case_free_titles_once(title: str) -> None:
    once = normalise(title)
    assert once
    assert normalise(once) == once or not any(c.isalnum() for c in title)


def names(source: str, *keys: str, industry: str | None = "claims", merge: bool = True) -> SourceNames:
    return SourceNames(source, merge, {(industry, key, key): 1 for key in keys})


def tasks_of(sources: list[SourceNames], merge: str = "normalised") -> dict[tuple[str, str], str]:
    rows = resolve(sources, {}, merge).aliases.to_pylist()  # type: ignore[arg-type]
    return {(row["source"], row["task_key"]): row["task_id"] for row in rows}


def test_merging_is_within_an_industry_and_only_where_it_is_wanted() -> None:
    same = tasks_of([names("a", "PayOut", "pay out"), names("b", "Pay_out")])
    assert len(set(same.values())) == 1
    apart = [names("a", "Pay"), names("b", "Pay", industry="loans"), names("c", "Pay", industry=None), names("d", "Pay", industry=None)]
    assert len(set(tasks_of([*apart, names("e", "Pay", merge=False)]).values())) == 5
    assert len(set(tasks_of([names("a", "PayOut", "pay out"), names("b", "Pay_out")], "off").values())) == 3


def test_an_identity_keeps_the_id_of_the_ledger() -> None:
    known = {("claims", "pay"): "tkept"}
    resolution = resolve([names("a", "Pay", "Check")], known, "normalised")
    assert resolution.ids["claims", "pay"] == "tkept"
    assert ledger_table(resolution.ids)["identity"].to_pylist() == ["check", "pay"]


def test_the_most_frequent_title_names_the_task() -> None:
    counts = {("i", "k1", "Pay out"): 2, ("i", "k2", "pay-out"): 3, ("i", "k2", "Pay-Out"): 3}
    resolution = resolve([SourceNames("a", True, counts)], {}, "normalised")
    assert list(resolution.titles.values()) == ["Pay-Out"]
    assert [(a["task_key"], a["title"], a["method"]) for a in resolution.aliases.to_pylist()] == [
        ("k1", "Pay out", "normalised"), ("k2", "Pay-Out", "exact"),
    ]
