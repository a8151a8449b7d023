"""ξ, γ, p, q, statistics and needs of a history small enough to reckon by hand."""

import math
from typing import Any

import pyarrow as pa
import pytest

from opus_pipelines.core.schemas import ALIASES, CASES, EDGES, NEEDS, TASK_IMPLEMENTATIONS, TASKS, VARIANTS, Dataset
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from opus_pipelines.wkg.checks import check_snapshot
from opus_pipelines.wkg.snapshot import Snapshot

pytestmark = pytest.mark.long


def rows(lake: Lake, dataset: Dataset) -> list[dict]:
    folder = lake.snapshot_folder(lake.current_snapshot())
    return read_table(dataset, dataset_folder(folder, dataset)).to_pylist()


def by_title(lake: Lake) -> dict[str, dict]:
    return {row["title"]: row for row in rows(lake, TASKS)}


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory, history: Any, rebuild: Any) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("mined") / "lake")
    rebuild(lake, history.write(lake, "acme", history.claims(client="acme")))
    return lake


def test_edges_count_pairs_and_weigh_them_by_lwm_2(mined: Lake) -> None:
    names = {row["task_id"]: title for title, row in by_title(mined).items()}
    found = {
        (names[r["src"]], names[r["dst"]]): (
            r["transitions"],
            r["variants"],
            r["implementations"],
            r["probability"],
            round(r["gamma"], 6),
        )
        for r in rows(mined, EDGES)
    }
    lambda_ = math.log(2) / 5  # counts 1, 3, 7, 7: the median is 5
    gamma = lambda n: round(1 - math.exp(-lambda_ * n), 6)
    assert found == {
        ("Register", "Check"): (7, 2, 7, 0.7, gamma(7)),
        ("Register", "Pay"): (3, 1, 3, 0.3, gamma(3)),
        ("Check", "Pay"): (7, 2, 7, 0.875, gamma(7)),
        ("Check", "Check"): (1, 1, 1, 0.125, gamma(1)),
    }
    assert {r["wait_ms_mean"] for r in rows(mined, EDGES)} == {3_600_000.0}


@pytest.mark.parametrize(
    ("title", "p", "p_n", "p_basis", "q", "q_n", "q_basis"),
    [
        # 10 of 10, 6 of 7 and 7 of 10 come from a pool of p of mean .8697037 and strength 6.624029, 1 of 1 from one of
        # q, 1/3 and 5.
        ("Register", (10 + 6.624029 * 0.8697037) / 16.624029, 10, "observed", 1 / 3, 0, "prior"),
        ("Check", (6 + 6.624029 * 0.8697037) / 13.624029, 7, "observed", (1 + 5 / 3) / 6, 1, "observed"),
        ("Pay", (7 + 6.624029 * 0.8697037) / 16.624029, 10, "observed", 1 / 3, 0, "prior"),
    ],
)
def test_p_and_q_are_counts_smoothed_towards_their_pool(
    mined: Lake, title: str, p: float, p_n: int, p_basis: str, q: float, q_n: int, q_basis: str
) -> None:
    row = by_title(mined)[title]
    assert (row["p_n"], row["p_basis"], row["q_n"], row["q_basis"]) == (p_n, p_basis, q_n, q_basis)
    assert (row["p"], row["q"]) == (pytest.approx(p, abs=1e-6), pytest.approx(q, abs=1e-6))
    assert row["p_lower"] < row["p"] < row["p_upper"]


def test_statistics_of_tasks_and_ways(mined: Lake) -> None:
    check, register = by_title(mined)["Check"], by_title(mined)["Register"]
    figures = ("duration_ms_mean", "duration_ms_p50", "duration_ms_p90", "duration_basis")
    assert [check[f] for f in figures] == [1_500.0, 1_500.0, 2_000.0, "observed"]
    assert [register[f] for f in figures] == [None] * 4
    figures = ("cost_usd_mean", "cost_usd_p50", "cost_usd_p90", "cost_basis")
    assert [check[f] for f in figures] == [0.25, 0.25, pytest.approx(0.4), "rate"]
    assert [register[f] for f in figures] == [None] * 4
    assert (check["wait_n"], check["wait_ms_mean"]) == (0, None)
    assert (check["implementations"], check["duration_n"], check["cost_n"], register["cost_n"]) == (8, 8, 8, 0)
    assert (check["in_degree"], check["out_degree"], check["industries"], check["clients"]) == (
        2,
        2,
        ["claims"],
        ["acme"],
    )
    assert check["instructions"] == ["compare the sum"]
    ways = {
        (w["actor_kind"], w["model"]): w for w in rows(mined, TASK_IMPLEMENTATIONS) if w["task_id"] == check["task_id"]
    }
    figures = ("implementations", "duration_ms_mean", "duration_ms_p50", "p_n", "p_basis", "q_n", "q_basis")
    assert {k: tuple(w[f] for f in figures) for k, w in ways.items()} == {
        ("human", None): (4, 2_000.0, 2_000.0, 3, "observed", 1, "observed"),
        ("model", "m-small"): (4, 1_000.0, 1_000.0, 4, "observed", 0, "estimated"),
    }
    assert all(w["p_lower"] < w["p"] < w["p_upper"] and w["q_lower"] < w["q"] < w["q_upper"] for w in ways.values())
    small = ways["model", "m-small"][
        "p"
    ]  # 4 of 4; between that and what the people of the task and the other tasks let expect
    assert max(check["p"], ways["human", None]["p"]) < small < 1


def test_needs_of_the_industry_the_client_and_the_kind_of_case(mined: Lake) -> None:
    check = by_title(mined)["Check"]["task_id"]
    found = {(r["client"], r["kind_of_case"]): r for r in rows(mined, NEEDS) if r["task_id"] == check}
    assert set(found) == {(None, None), ("acme", None), (None, "claim"), ("acme", "claim")}
    row = found["acme", "claim"]
    assert (row["cases_with"], row["success_with"], row["cases_without"], row["success_without"]) == (7, 7, 3, 0)
    # Wilson: 7 of 7 ends at 7 / (7 + z²), 0 of 3 at z² / (3 + z²); Newcombe's distance from the lift of 1 is their
    # hypotenuse.
    z2 = 1.959963984540054**2
    assert (row["lift"], row["lift_lower"]) == (1.0, pytest.approx(1 - math.hypot(z2 / (7 + z2), z2 / (3 + z2))))
    assert row["needed"] is True
    assert [row[f"adjusted_{end}"] for end in ("lift", "lower", "upper")] == [
        row["lift"],
        row["lift_lower"],
        row["lift_upper"],
    ]
    assert row["alternatives"] == [check]
    ever_present = next(
        r for r in rows(mined, NEEDS) if r["task_id"] == by_title(mined)["Pay"]["task_id"] and r["client"] is None
    )
    assert (ever_present["cases_without"], ever_present["lift"], ever_present["needed"]) == (0, None, True)


def test_cases_variants_and_aliases(mined: Lake) -> None:
    ids = {title: row["task_id"] for title, row in by_title(mined).items()}
    cases = rows(mined, CASES)
    assert len(cases) == 10
    assert sorted(map(tuple, (c["task_keys"] for c in cases)))[-1] == ("Register", "Pay")
    assert all([ids[k] for k in c["task_keys"]] == c["tasks"] for c in cases)
    variants = {
        tuple(v["tasks"]): (v["implementations"], v["success_known"], v["successes"]) for v in rows(mined, VARIANTS)
    }
    assert variants[ids["Register"], ids["Pay"]] == (3, 3, 0)
    assert {(a["task_key"], a["method"], a["similarity"]) for a in rows(mined, ALIASES)} == {
        (t, "exact", 1.0) for t in ids
    }


def test_the_published_snapshot_passes_its_checks_and_opens(mined: Lake) -> None:
    snapshot = Snapshot.open(mined)
    assert [c for c in check_snapshot(snapshot.folder) if not c.passed] == []
    assert (len(snapshot.graph.tasks), len(snapshot.graph.edges), snapshot.cases.num_rows) == (3, 4, 10)
    assert snapshot.manifest["counts"]["wkg/edges"] == 4
    assert snapshot.manifest["lambda"] == math.log(2) / 5
    assert snapshot.implementation_vectors.num_rows == 10
    assert snapshot.implementation_vectors.schema.field("vector").type == pa.list_(pa.float32(), 8)


def test_predecessors_make_edges_where_they_are_stated_and_weight_multiplies(
    lake: Lake, history: Any, rebuild: Any
) -> None:
    dag = [
        history.step("A"),
        history.step("B"),
        history.step("C", predecessors=[0]),
        history.step("D", predecessors=[1, 2]),
    ]
    rebuild(lake, history.write(lake, "models", [history.case(1, dag, weight=3)]))
    names = {row["task_id"]: title for title, row in by_title(lake).items()}
    assert {
        (names[r["src"]], names[r["dst"]]): (r["transitions"], r["variants"], r["implementations"])
        for r in rows(lake, EDGES)
    } == {
        ("A", "B"): (3, 1, 3),
        ("A", "C"): (3, 1, 3),
        ("B", "D"): (3, 1, 3),
        ("C", "D"): (3, 1, 3),
    }


def test_without_step_outcomes_p_is_estimated_from_cases_and_refusals_do_not_count(
    lake: Lake, history: Any, rebuild: Any
) -> None:
    cases = [history.case(i, [history.step("A"), history.step("B")], success=i < 8) for i in range(10)]
    cases += [history.case(i, [history.step("A")], success=True, expected_outcome=False) for i in range(10, 30)]
    rebuild(lake, history.write(lake, "runs", cases))
    task, other = by_title(lake)["B"], by_title(lake)["A"]
    # 8 of 10 cases that were to succeed, and 5 more at the settings' .95 twice: the root of it is the mean of p that
    # both lean to
    mean = ((8 + 5 * 0.95**2) / 15) ** 0.5
    assert (task["p_basis"], task["p_n"], task["q"], task["q_basis"], task["q_n"]) == (
        "estimated",
        10,
        0.0,
        "estimated",
        10,
    )
    assert 0.8**0.5 < task["p"] < mean
    assert task["p"] * other["p"] == pytest.approx(mean**2, abs=0.02)
    assert task["p_lower"] < 0.8 < task["p"] < task["p_upper"] < 1
    assert task["q_upper"] > 0.5
    assert {(n["cases_with"], n["cases_without"]) for n in rows(lake, NEEDS)} == {(10, 0)}


def test_an_outcome_that_the_activities_decide_tells_nothing_of_a_step(lake: Lake, history: Any, rebuild: Any) -> None:
    cases = [history.case(i, [history.step("Create"), history.step("Pay")], success=True) for i in range(30)]
    cases += [history.case(i, [history.step("Create"), history.step("Remind")], success=False) for i in range(30, 60)]
    source = history.write(lake, "fines", cases)
    judged = rebuild(lake, source)
    assert by_title(lake)["Pay"]["p_basis"] == "estimated"
    source.by_activities = True  # `last_activity_in = ["Pay"]` in source.toml
    decided = rebuild(lake, source)
    assert (decided.mined, decided.snapshot_id != judged.snapshot_id) == ([], True)
    assert {r["p_basis"] for r in by_title(lake).values()} == {"prior"}
    assert rows(lake, NEEDS) == []
    assert sorted((v["success_known"], v["successes"]) for v in rows(lake, VARIANTS)) == [(30, 0), (30, 30)]
    assert Snapshot.open(lake).by_activities == {"fines"}


def test_ways_of_people_are_told_apart_by_the_group_that_their_events_name(
    lake: Lake, history: Any, rebuild: Any
) -> None:
    person, program = {"actor_kind": "human"}, {"actor_kind": "code"}
    steps = [
        history.step("A", attributes={"org:group": "north", "org:role": "clerk"}, **person),
        history.step("A", attributes={"org:role": "clerk"}, instructions=["by hand"], **person),
        history.step("A", attributes={"actor_group": "night shift"}),
        history.step("A", attributes={"org:group": "north"}, **program),
        history.step("A", **person),
        history.step("A", attributes={"Rolle": "Buchhaltung"}),
        history.step("A", attributes={"org:role": "UNDEFINED", "org:group": "missing"}, **person),  # words for nobody
        history.step("A", attributes={"actor_group": "desk 3", "org:role": "clerk"}, **person),
    ]
    rebuild(lake, history.write(lake, "runs", [history.case(1, steps)]))
    ways = {
        (w["actor_kind"], w["actor_group"]): (w["implementations"], w["instructions"])
        for w in rows(lake, TASK_IMPLEMENTATIONS)
    }
    assert ways == {
        ("human", "north"): (1, None),
        ("human", "clerk"): (1, ["by hand"]),
        (None, "night shift"): (1, None),
        ("code", None): (1, None),
        ("human", None): (2, None),
        (None, "Buchhaltung"): (1, None),
        ("human", "desk 3"): (1, None),
    }
    (case,) = rows(lake, CASES)  # as Spark tells it, so do the cases that savings are counted over
    assert case["actor_groups"] == ["north", "clerk", "night shift", None, None, "Buchhaltung", None, "desk 3"]
    assert case["models"] == [None] * 8
    assert (case["kind"], len(case["task_actors"])) == ("executed", 8)


def test_a_history_without_any_case_still_has_every_dataset(lake: Lake, history: Any, rebuild: Any) -> None:
    build = rebuild(lake)
    assert set(build.counts.values()) == {0}
    assert [c for c in check_snapshot(lake.snapshot_folder(build.snapshot_id)) if not c.passed] == []
    assert not (lake.kept / "lambda.json").exists()
