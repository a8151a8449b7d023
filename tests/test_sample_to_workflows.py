"""The whole chain on the sample, held against the truth that the sample was drawn from."""

import json
import math
import shutil
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rustworkx as rx

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import EDGES, OPTIMIZED, TASK_IMPLEMENTATIONS, WORKFLOW_TASKS
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.results.contract import publish_contract
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.intakes.intake import discover, read_intake
from opus_pipelines.lake.layout import Lake, read_table
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.retrieval.routing import CaseRetriever
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.quality.sample.earnings import earnings
from opus_pipelines.reporting.contract_tables import report_tables
from opus_pipelines.reporting.views import connect, run, write_views_sql
from opus_pipelines.reporting.workflows import read_workflow
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.evaluation.score import score_file
from opus_pipelines.workflow.files import AnnotatedWorkflow
from opus_pipelines.workflow.formats.bpmn import as_bpmn, from_bpmn
from opus_pipelines.workflow.model import INPUT, OUTPUT
from tests import published_rows
from tests.generation.contracts import NOW, ContractGenerator
from tests.generation.planning.chains import chain_workflow
from tests.quality.sample.simulate import expected_reward, simulate_chain, step_of

pytestmark = pytest.mark.model

SETTINGS = Settings()
HOSTILE = tomllib.loads((Path(__file__).parent / "hostile_documents.toml").read_text())


@pytest.fixture(scope="module")
def sample(sample_files: Any) -> Any:
    return sample_files


@pytest.fixture(scope="module")
def truth(sample: Any) -> Any:
    return json.loads(sample.truth.read_text())


@pytest.fixture(scope="module")
def lake(sample_lake: Lake) -> Any:
    return sample_lake


@pytest.fixture(scope="module")
def knowledge(lake: Any) -> Any:
    return SnapshotIndex(Snapshot.open(lake))


@pytest.fixture(scope="module")
def cached(lake: Any, encoder: TextEncoder) -> Any:
    return CachedEncoder(encoder, lake.kept / "embeddings")


@pytest.fixture(scope="module")
def generate(lake: Any, cached: CachedEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ContractGenerator(lake, SETTINGS, cached, tmp_path_factory.mktemp("generated")) as generator:
        yield generator


@pytest.fixture(scope="module")
def results(sample: Any, generate: Any) -> Any:
    found = [generate(c) for c in discover(sample.intakes_folder)]
    return {(r.client, r.contract): r for r in found}


@pytest.fixture(scope="module")
def kinds(truth: Any, results: Any) -> Any:
    """Kind of case by Intention: a mixed intake asks for several, in their order."""
    wanted = {(i["client"], i["contract"], i["intake"]): i["kinds"] for i in truth["intakes"]}
    made = [
        (key, intake) for key, result in results.items() for intake in {i.folder: i for i, _ in result.made}.values()
    ]
    return {make_id("n", i.intake_id, n): kind for key, i in made for n, kind in enumerate(wanted[*key, i.folder])}


def kind_of(truth: Any, industry: Any, name: Any) -> Any:
    return next(k for k in truth["industries"][industry]["kinds"] if k["kind"] == name)


def every_best(results: Any) -> Any:
    return [(key, intake, made, made.ranked[0][1]) for key, result in results.items() for intake, made in result.made]


def test_a_mixed_intake_has_an_intention_for_each_of_its_goals_and_no_other_intake_has(results: Any) -> None:
    every = [(intake.folder, made.request.intention) for r in results.values() for intake, made in r.made]
    goals = {(folder, intention.goal[:35]) for folder, intention in every if len(intention.requests) == 1}
    assert goals == {
        ("2025-09-15-two-losses", "Thieves forced the kitchen window a"),
        ("2025-09-15-two-losses", "In the bathroom a pipe burst behind"),
    }


def test_rules_of_the_documents_bind_with_their_sentences(results: Any) -> None:
    found = {
        (intake.folder, d.kind, d.value, d.place)
        for r in results.values()
        for intake, made in r.made
        for d in made.context.requirements.rules.rules
        if d.is_in_force and d.sentence
    }
    assert (
        "enc-204502-diabetes-follow-up",
        "must_contain",
        "Audit Code Level",
        "process/established_patients.md, line 4",
    ) in found
    assert (
        "inv-88213-packaging",
        "before",
        "Approve Payment before Post to Ledger",
        "contract/accounts_payable_sop.md, line 7",
    ) in found


@pytest.mark.parametrize(
    ("places", "names"),
    [
        (("../documents", "process"), tuple(HOSTILE)),
        (("output",), tuple(HOSTILE)),
        (("input",), ("system.txt",)),
        (("input",), ("mail.eml",)),
    ],
)
def test_documents_that_try_to_steer_change_no_constraint_cost_or_rank(
    sample: Any, results: Any, generate: Any, tmp_path: Path, places: Any, names: Any
) -> None:
    shutil.copytree(
        sample.intakes_folder / "harbourline-mutual" / "motor-claims", tmp_path / "harbourline-mutual" / "motor-claims"
    )
    (contract,) = discover(tmp_path)
    for place in places:
        for name in names:
            (contract.intakes[0] / place / f"x_{name}").write_text(HOSTILE[name])
    steered = generate(contract)
    ranks = lambda made: [
        (r, c.tasks, c.workflow.edges, c.evaluation, c.violations, c.penalties, c.scores) for r, c in made.ranked
    ]
    facts = lambda made: (
        made.context.requirements.rules.constraints,
        [d for d in made.context.requirements.rules.rules if d.is_in_force],
        ranks(made),
    )
    before = results["Harbourline Mutual", "Motor Claims"].made
    assert [facts(made) for _, made in steered.made] == [facts(made) for _, made in before]


def test_every_intake_of_every_contract_gets_workflows(results: Any) -> None:
    assert len(results) == 6
    assert sum(len(r.made) for r in results.values()) == 26
    assert [r.failed + r.refused for r in results.values()] == [[]] * 6
    assert all(best.feasible for _, _, _, best in every_best(results))


def test_work_that_no_case_combined_is_generated_and_earns_more_than_any_near_case_would(
    results: Any, kinds: Any, truth: Any, knowledge: Any
) -> None:
    """What is needed for it no case of history did, so whatever is looked up is damaged; the generated workflow is
    not.
    """
    made_up = []
    for _, intake, made, best in every_best(results):
        kind = kind_of(truth, intake.industry, kinds[made.request.intention_id])
        assert knowledge.is_known_variant(best.tasks) == bool(kind["cases"]), intake.folder
        assert (made.baseline.cost_usd is None) == (not kind["cases"])
        if not kind["cases"]:
            made_up.append(intake.folder)
            needed = {n["task"] for n in kind["needed"]}
            done = [
                {step_of(truth, intake.industry, knowledge.graph.tasks[t].title) for t in case.tasks}
                for case in made.evidence.cases
            ]
            assert not any(needed <= tasks for tasks in done)
            earned = expected_reward(truth, intake.industry, best.workflow, kind["kind"], best.evaluation.start_ms)
            assert earned == pytest.approx(best.worth, rel=0.06)
            assert earned > intake.gain_usd * max(
                math.prod(1 - n["damage"] for n in kind["needed"] if n["task"] not in d) for d in done
            )
    assert len(made_up) == 6


def test_no_rank_one_workflow_leaves_out_what_its_kind_of_work_needs(results: Any, kinds: Any, truth: Any) -> None:
    for key, intake, made, best in every_best(results):
        done = {step_of(truth, intake.industry, t.title) for t in best.workflow.tasks}
        missing = set(kind_of(truth, intake.industry, kinds[made.request.intention_id])["always"]) - done
        assert not missing, (key, intake.folder, missing)


def cheapest_tasks(wfg: Any, cost: Any, kappa: Any) -> Any:
    """The tasks of the cheapest path from input to output, by node costs and κ·(1 - γ) an edge, LWM (12)."""
    graph = rx.PyDiGraph()
    number = {node: graph.add_node(node) for node in wfg.nodes}
    for (src, dst), edge in wfg.edges.items():
        graph.add_edge(number[src], number[dst], cost.get(dst, 0.0) + kappa * edge.one_minus_gamma)
    path = rx.dijkstra_shortest_paths(graph, number[INPUT], number[OUTPUT], weight_fn=float)[number[OUTPUT]]
    return [graph[node] for node in path][1:-1]


def test_the_shortcut_is_the_cheapest_path_and_does_not_win(
    results: Any, truth: Any, kinds: Any, knowledge: Any
) -> None:
    """Without needed tasks the search takes a path that leaves the planted check out; with them it never
    ranks first.
    """
    trapped = 0
    for _, intake, made, best in every_best(results):
        needed = {n["task"] for n in kind_of(truth, intake.industry, kinds[made.request.intention_id])["needed"]}
        prices = made.context.draft.prices.costs
        cost = {t: min((mode.cost_usd or 0.0) + mode.time_usd for mode in modes) for t, modes in prices.items()}
        cheapest = cheapest_tasks(made.drafted.wfg, cost, SETTINGS.cost.kappa_usd)
        titles = {step_of(truth, intake.industry, knowledge.graph.tasks[t].title) for t in cheapest}
        assert sum(cost[t] for t in cheapest) <= best.path_cost_usd
        trapped += bool(needed - titles)
    assert trapped >= 10


@pytest.mark.parametrize("contract", ["Motor Claims", "Household Claims", "Visit Coding"])
def test_the_reward_is_what_the_truth_earns(results: Any, truth: Any, kinds: Any, contract: Any) -> None:
    """10,000 simulated runs of each rank-1 workflow: the mean Reward agrees with reward_usd within 5 %."""
    for key, intake, made, best in every_best(results):
        if key[1] == contract:
            steps = [(t.title, t.actor_kind, t.model) for t in best.workflow.tasks]
            simulated = simulate_chain(
                truth, intake.industry, steps, intake.gain_usd, kind=kinds[made.request.intention_id]
            )
            assert best.worth == pytest.approx(simulated.mean_reward, rel=0.05)
            assert best.evaluation.cost_usd == pytest.approx(simulated.mean_cost, rel=0.05)
            assert best.evaluation.success_probability == pytest.approx(simulated.success_rate, abs=0.03)


def test_mined_ways_agree_with_the_truth(lake: Any, truth: Any, knowledge: Any) -> None:
    """p, mean cost and mean duration of every way done at least 150 times, within 5 standard errors of the truth that
    made it.
    """
    compared = 0
    for row in read_table(
        TASK_IMPLEMENTATIONS, lake.snapshot_folder(knowledge.snapshot.id) / "task_implementations"
    ).to_pylist():
        task = knowledge.graph.tasks[row["task_id"]]
        industry = task.industries[0]
        known = next(
            t for t in truth["industries"][industry]["tasks"] if t["task"] == step_of(truth, industry, task.title)
        )
        way = next(w for w in known["ways"] if (w["actor_kind"], w["model"]) == (row["actor_kind"], row["model"]))
        if row["implementations"] < 150:
            continue
        compared += 1
        pull = SETTINGS.priors.strength / row["p_n"]  # of the smoothing, at most the whole difference of two ways
        assert abs(row["p"] - way["p"]) < 5 * math.sqrt(way["p"] * (1 - way["p"]) / row["p_n"]) + pull, (
            task.title,
            row["model"],
        )
        if row["cost_basis"] == "observed":
            assert row["cost_usd_mean"] == pytest.approx(
                way["cost_usd_mean"], rel=5 * 0.25 / math.sqrt(row["cost_n"]) + 0.01
            )
        assert row["duration_ms_mean"] == pytest.approx(
            way["duration_ms_mean"], rel=5 * 0.25 / math.sqrt(row["duration_n"]) + 0.01
        )
    assert compared >= 60


def test_mined_transitions_agree_with_the_truth(lake: Any, truth: Any, knowledge: Any) -> None:
    """Transition probabilities against the exact Markov chain's, within 5 standard errors; nothing that the truth
    excludes is there.
    """
    titles = {
        t: (task.industries[0], step_of(truth, task.industries[0], task.title))
        for t, task in knowledge.graph.tasks.items()
    }
    expected = {(industry, e["src"], e["dst"]): e for industry, i in truth["industries"].items() for e in i["edges"]}
    rows = read_table(EDGES, lake.snapshot_folder(knowledge.snapshot.id) / "edges").to_pylist()
    out = {src: sum(r["transitions"] for r in rows if r["src"] == src) for src in {r["src"] for r in rows}}
    for row in rows:
        true = expected[*titles[row["src"]], titles[row["dst"]][1]]["probability"]
        # cases of one kind go the same way together, so counts vary more than independent draws do
        assert row["probability"] == pytest.approx(true, abs=0.01 + 8 * math.sqrt(true * (1 - true) / out[row["src"]]))


def test_another_intakes_documents_lead_to_another_workflow(
    results: Any, sample: Any, generate: Any, tmp_path: Path
) -> None:
    """The collision intake of the motor contract with the glass intake's documents in place of its own."""
    folder = tmp_path / "intakes"
    shutil.copytree(
        sample.intakes_folder / "harbourline-mutual" / "motor-claims", folder / "harbourline-mutual" / "motor-claims"
    )
    (contract,) = discover(folder)
    glass = next(f for f in contract.intakes if "windscreen" in f.name)
    collision = next(f for f in contract.intakes if "roundabout" in f.name)
    for role in ("input", "output", "process"):
        shutil.rmtree(collision / role, ignore_errors=True)
        if (glass / role).is_dir():
            shutil.copytree(glass / role, collision / role)
    changed = generate(contract)
    ranked = {i.folder: m.ranked[0][1].tasks for i, m in changed.made}
    before = {i.folder: m.ranked[0][1].tasks for i, m in results["Harbourline Mutual", "Motor Claims"].made}
    assert ranked[collision.name] != before[collision.name]
    assert ranked[collision.name] == before[glass.name]
    assert ranked[glass.name] == before[glass.name]


def test_constraints_decide_feasibility_and_name_what_is_violated(sample: Any, generate: Any, tmp_path: Path) -> None:
    shutil.copytree(
        sample.intakes_folder / "harbourline-mutual" / "motor-claims", tmp_path / "harbourline-mutual" / "motor-claims"
    )
    (contract,) = discover(tmp_path)
    (contract.intakes[0] / "intake.toml").write_text(
        '[constraints]\nmax_cost_usd = 0.01\nmust_not_contain = ["Verify Coverage"]\n'
    )
    result = generate(contract)
    best = result.made[0][1].ranked[0][1]
    assert not best.feasible
    said = [v.split(":")[0] for v in best.violations]
    assert said[:3] == ["max_cost_usd", "must_not_contain", "conflict"]
    assert set(said[3:]) <= {"conflict", "relax"}
    assert "exceeds 0.01 by" in best.violations[0]


def rank_1(result: Any) -> Any:
    """The row of the one workflow that is ranked first."""
    (row,) = [row for row in result.tables[OPTIMIZED.name].to_pylist() if row["rank"] == 1]
    return row


HOUR, DAY = 3.6e6, 86.4e6


def test_a_step_that_takes_days_is_in_the_lead_time_and_not_in_the_touch_time(results: Any) -> None:
    """The police answer within three days on average; a program then attaches the report in eight seconds."""
    tables = results["Harbourline Mutual", "Home Claims"].tables
    steps = [t for t in tables[WORKFLOW_TASKS.name].to_pylist() if t["title"] == "Obtain Police Report"]
    workflows = {w["workflow_id"]: w for w in tables[OPTIMIZED.name].to_pylist()}
    mixed: set[str] = set()
    assert steps
    for step in steps:
        workflow = workflows[step["workflow_id"]]
        assert step["duration_ms"] < HOUR
        assert 1.5 * DAY < step["wait_ms_p50"] < 4 * DAY
        assert step["wait_ms_p90"] > step["wait_ms_p50"]
        assert step["wait_basis"] in ("edge_way", "way", "edge", "task")
        assert workflow["duration_ms"] < 0.5 * DAY
        assert 1.5 * DAY < workflow["lead_time_ms_p50"] < 5 * DAY
        assert workflow["lead_time_ms_p90"] > workflow["lead_time_ms_p50"] + DAY
        assert workflow["lead_time_basis"] == "waiting and work" or "whole cases" in workflow["lead_time_basis"]
        if workflow["baseline_lead_time_ms"] is None:  # no case did all of the work of a mixed intake
            assert workflow["baseline_cost_usd"] is None
            mixed.add(workflow["intake_id"])
        else:
            assert workflow["lead_time_ms_p50"] == pytest.approx(workflow["baseline_lead_time_ms"], rel=0.35)
    assert len(mixed) < len({workflows[step["workflow_id"]]["intake_id"] for step in steps})


@pytest.mark.parametrize(
    ("stated", "least", "most", "feasible"),
    [
        ("[constraints]\nmax_lead_time_hours = 480\n", 0.99, 1.0, True),
        ("[constraints]\nmax_lead_time_hours = 72\n", 0.3, 0.8, False),
        ("[constraints]\nmax_lead_time_hours = 72\nmin_p_deadline = 0.3\n", 0.3, 0.8, True),
        ("[constraints]\nmax_duration_hours = 72\n", None, None, True),
    ],
)
def test_a_deadline_is_held_against_the_lead_time(
    sample: Any, generate: Any, tmp_path: Path, stated: Any, least: Any, most: Any, feasible: Any
) -> None:
    result = generate(burglary(sample, tmp_path, stated))
    best = rank_1(result)
    assert best["feasible"] is feasible
    if least is None:
        assert (best["p_deadline"], best["deadline_hours"]) == (None, None)
    else:
        assert least <= best["p_deadline"] <= most
        assert [v.split(":")[0] for v in best["violations"]] == ([] if feasible else ["max_lead_time_hours"])


@pytest.mark.parametrize(
    ("within", "least", "most", "feasible"), [("20 working days", 0.99, 1.0, True), ("2 days", 0.0, 0.8, False)]
)
def test_a_deadline_of_a_step_in_a_procedure_is_held_against_the_time_up_to_it(
    sample: Any,
    generate: Any,
    tmp_path: Path,
    within: Any,
    least: Any,
    most: Any,
    feasible: Any,
) -> None:
    contract = burglary(sample, tmp_path, "")
    (folder,) = [p for p in contract.folder.iterdir() if p.is_dir() and p.name != "documents"]
    (folder / "process").mkdir(exist_ok=True)
    (folder / "process" / "promise.md").write_text(f"The payment must be issued within {within} of receipt.\n")
    (contract,) = discover(tmp_path)
    best = rank_1(generate(contract))
    (said,) = best["step_deadlines"]
    deadline, _, kept = said.rpartition(": kept with probability ")
    assert deadline == f"'Issue Payment' within {within} of the start"
    assert least <= float(kept.partition(" (")[0]) <= most
    assert [v.split(":")[0] for v in best["violations"]] == ([] if feasible else ["deadlines"])


def test_on_a_calendar_of_office_hours_people_take_longer(sample: Any, generate: Any, tmp_path: Path) -> None:
    around = generate(burglary(sample, tmp_path / "around", ""))
    contract = burglary(sample, tmp_path / "office", "")
    stated = contract.folder / "contract.toml"
    stated.write_text(
        stated.read_text()
        + '\n[calendar]\ntimezone = "Europe/London"\nworking_hours = "09:00-17:00"\nholidays = ["GB"]\n'
    )
    (contract,) = discover(tmp_path / "office")
    office = generate(contract)
    first, second = (rank_1(r) for r in (around, office))
    assert first["duration_ms"] == second["duration_ms"]
    assert second["lead_time_ms_p50"] > first["lead_time_ms_p50"] + 0.1 * DAY


def burglary(sample: Any, folder: Any, stated: Any) -> Any:
    """Home claims with one intake, a burglary, that states so much."""
    place = folder / "harbourline-mutual" / "home-claims"
    shutil.copytree(sample.intakes_folder / "harbourline-mutual" / "home-claims", place)
    for intake in [p for p in place.iterdir() if p.is_dir() and p.name != "documents"]:
        texts = " ".join(f.read_text(errors="replace") for f in intake.rglob("*") if f.is_file())
        if "urglar" not in texts:
            shutil.rmtree(intake)
    (one, *others) = sorted(p for p in place.iterdir() if p.is_dir() and p.name != "documents")
    for other in others:
        shutil.rmtree(other)
    (one / "intake.toml").write_text(stated)
    (contract,) = discover(folder)
    return contract


def test_a_broken_intake_costs_only_itself(sample: Any, generate: Any, tmp_path: Path) -> None:
    shutil.copytree(
        sample.intakes_folder / "harbourline-mutual" / "motor-claims", tmp_path / "harbourline-mutual" / "motor-claims"
    )
    (contract,) = discover(tmp_path)
    first, second, *others = contract.intakes
    (first / "intake.toml").write_text("gain = 3")
    shutil.rmtree(second / "input")
    result = generate(contract)
    assert [i.folder for i, _ in result.made] == [other.name for other in others]
    assert "unknown key gain;" in result.failed[0]
    assert "no readable client input" in result.refused[0]
    assert result.tables["generation/intakes"]["status"].to_pylist().count("generated") == 2


def test_an_industry_without_history_is_refused_with_the_nearest(sample: Any, generate: Any, tmp_path: Path) -> None:
    shutil.copytree(sample.intakes_folder / "meridian-clinics", tmp_path / "meridian-clinics")
    path = tmp_path / "meridian-clinics" / "visit-coding" / "contract.toml"
    path.write_text(path.read_text().replace('"medical coding"', '"dental coding"'))
    result = generate(discover(tmp_path)[0])
    assert result.failed == []
    assert "'dental coding'" in result.refused[0]
    assert "nearest by name: medical coding" in result.refused[0]


LIBRARY = """\
* lend_book:
- The reader's loans must be fewer than ten.
- The shelf of the title must not be empty.

* return_book:
- The loan of the reader must be open.

* check_title_shelf

* get_reader_loans
"""


def test_an_industry_without_history_gets_the_steps_that_its_own_procedure_lists(generate: Any, tmp_path: Path) -> None:
    intake = tmp_path / "northgate" / "library" / "one-book"
    for role, text in (("input", "Please lend me a book on bees."), ("process", LIBRARY)):
        (intake / role).mkdir(parents=True)
        (intake / role / f"{role}.txt").write_text(text)
    (intake.parent / "contract.toml").write_text('industry = "public library"\n')
    result = generate(discover(tmp_path)[0])
    assert (result.failed, result.refused) == ([], [])
    (best,) = [row for row in result.tables[OPTIMIZED.name].to_pylist() if row["rank"] == 1]
    steps = [t for t in result.tables[WORKFLOW_TASKS.name].to_pylist() if t["workflow_id"] == best["workflow_id"]]
    ordered = sorted((t["position"], t["title"]) for t in steps if t["kind"] == "task")
    assert [title for _, title in ordered] == ["get_reader_loans", "check_title_shelf", "lend_book"]
    assert best["verdict"] == "undecided"
    assert "public library" in best["verdict_reason"]
    assert {t["cost_basis"] for t in steps if t["kind"] == "task"} <= {"estimated", "prior"}
    assert (best["share_similar_cases"], best["share_procedure"], best["share_model"]) == (None, 1.0, None)
    assert all(t["asked_by"] == ["procedure"] for t in steps if t["kind"] == "task")


def test_ranks_and_figures_hang_together(results: Any) -> None:
    for result in results.values():
        tasks = result.tables[WORKFLOW_TASKS.name].to_pylist()
        for row in result.tables[OPTIMIZED.name].to_pylist():
            mine = [t for t in tasks if t["workflow_id"] == row["workflow_id"] and t["kind"] == "task"]
            assert row["tasks"] == len(mine)
            assert row["cost_usd"] == pytest.approx(sum(t["cost_usd"] for t in mine))
            assert row["reward_usd"] == pytest.approx(row["gain_usd"] * row["success_of_steps"] - row["cost_usd"])
            assert row["duration_ms"] == pytest.approx(sum(t["duration_ms"] for t in mine))
            assert 0 <= row["observed_share"] <= 1
            assert row["baseline_cost_usd"] is None or row["baseline_cost_usd"] > 0
            assert all(t["task_keys"] for t in mine)


def test_every_workflow_says_which_share_of_its_steps_came_from_where(results: Any) -> None:
    seen = set()
    for result in results.values():
        tasks = result.tables[WORKFLOW_TASKS.name].to_pylist()
        for row in result.tables[OPTIMIZED.name].to_pylist():
            mine = [t for t in tasks if t["workflow_id"] == row["workflow_id"] and t["kind"] == "task"]
            done = [t for t in mine if t["similar_share"] > 0]
            assert row["share_similar_cases"] == pytest.approx(len(done) / len(mine))
            assert {t["task_id"] for t in mine if t["origin"] == "history"} <= {t["task_id"] for t in done}
            asked = [t for t in mine if "procedure" in t["asked_by"]]
            assert row["share_procedure"] == pytest.approx(len(asked) / len(mine))
            assert row["share_model"] is None  # no model is trained on the sample
            assert row["has_optional"] or all(t["asked_by"] for t in mine)
            seen |= {reason for t in mine for reason in t["asked_by"]}
    assert {"outcomes", "constraint"} <= seen


def test_a_published_result_is_what_the_pointer_names(results: Any, lake: Any) -> None:
    result = results["Meridian Clinics", "Visit Coding"]
    result.tables |= report_tables(result)
    publish_contract(lake, result, NOW)
    (pointer,) = lake.results()
    assert (pointer["contract"], pointer["result"]) == ("Visit Coding", result.result)
    folder = lake.folder(OPTIMIZED, client_key=result.client, contract_key=result.contract, result=result.result)
    assert read_table(OPTIMIZED, folder).num_rows == result.tables[OPTIMIZED.name].num_rows
    cost = result.tables["reports/cost"].to_pylist()
    assert sum(r["share"] for r in cost) == pytest.approx(1)
    assert sum(r["cost_usd"] for r in cost) == pytest.approx(
        sum(m.ranked[0][1].evaluation.cost_usd for _, m in result.made)
    )


def test_what_is_published_is_exported_audited_and_has_no_orphans(results: Any, lake: Any, sample: Any) -> None:
    for result in results.values():
        result.tables |= report_tables(result)
        publish_contract(lake, result, NOW)
    write_views_sql(lake)
    connection = connect(lake)
    for _, _, _, best in every_best(results):
        file = read_workflow(connection, best.id).file
        assert file.workflow().edges == best.workflow.edges
        score = score_file("exported", file, SETTINGS.cost, SETTINGS.reward)
        assert (score.parts.reward_usd, score.penalty) == (best.worth, best.penalty)
        assert from_bpmn(as_bpmn(AnnotatedWorkflow(file)), "w.bpmn").workflow() == file.workflow()
        links = run(connection, "audit", {"workflow": best.id})
        assert links.filter("len(lost) > 0").fetchall() == []
    orphans = run(connection, "orphans")
    assert orphans.filter("orphans > 0").fetchall() == []
    assert orphans.filter("rows = 0").fetchall() == []
    found = earnings(connection, sample.truth)  # claimed beside what the truth says
    assert [one.work for one in found.values()] == [4, 4, 4, 4, 6, 4]
    for one in found.values():
        assert one.nearest < 0.7 * one.earned
        assert one.earned == pytest.approx(one.possible, rel=0.03)
        assert one.claimed == pytest.approx(one.earned, rel=0.03)


def test_savings_are_the_same_sums_from_the_steps_to_the_shipped_queries(results: Any, lake: Any) -> None:
    """One definition: of each workflow, contract and query a saving is the sum of its steps' savings, of the same
    cases and steps.
    """
    for result in results.values():
        result.tables |= report_tables(result)
        publish_contract(lake, result, NOW)
    write_views_sql(lake)
    connection = connect(lake)
    by_contract = {
        row[0:2]: dict(zip(found.columns, row, strict=True))
        for found in [run(connection, "saving_against_history")]
        for row in found.fetchall()
    }
    by_task = run(connection, "cost_by_task")
    assert len(by_contract) == len(results)
    compared = 0
    for (client, contract), result in results.items():
        steps: dict[str, list[float | None]] = {}
        for t in result.tables[WORKFLOW_TASKS.name].to_pylist():
            if t["kind"] in ("task", "review"):
                known = t["baseline_cost_usd"] is not None and t["cost_usd"] is not None
                assert (t["saving_usd"] is not None) == known
                assert not known or t["saving_usd"] == pytest.approx(t["baseline_cost_usd"] - t["cost_usd"])
                steps.setdefault(t["workflow_id"], []).append(t["saving_usd"])
        best = [row for row in result.tables[OPTIMIZED.name].to_pylist() if row["rank"] == 1]
        for row in best:
            savings = [s for s in steps[row["workflow_id"]] if s is not None]
            assert row["saving_usd"] == (pytest.approx(sum(savings)) if savings else None)
            assert row["compared_steps"] == len(savings)
            parts = [row[name] or 0.0 for name in ("saving_usd", "repetition_usd", "left_out_usd")]
            assert (row["cheaper_usd"] or 0.0) == pytest.approx(sum(parts))
            if len(savings) == len(
                steps[row["workflow_id"]]
            ):  # every step is compared: the saving is plain subtraction
                compared += 1
                assert row["saving_usd"] == pytest.approx(row["baseline_cost_usd"] - row["cost_usd"])
        whole = sum(row["saving_usd"] or 0.0 for row in best)
        tasks = by_task.filter(f"client = '{client}' AND contract = '{contract}'")
        assert sum(row["saving_usd"] or 0.0 for row in result.tables["reports/cost"].to_pylist()) == pytest.approx(
            whole
        )
        assert (tasks.aggregate("sum(saving_usd)").fetchall()[0][0] or 0.0) == pytest.approx(whole)
        query = by_contract[client, contract]
        assert (query["saving_usd"] or 0.0) == pytest.approx(whole)
        assert query["compared"] == sum(row["saving_usd"] is not None for row in best)
        if query["compared"] == query["intentions"] and query["cost_unknown_steps"] == 0:
            assert query["saving_usd"] == pytest.approx(query["baseline_cost_usd"] - query["cost_usd"])
    assert compared >= 10


def test_a_share_of_successes_is_the_one_count_that_explain_shows(results: Any) -> None:
    """`166 of 198` and the share that history succeeded with are one figure."""
    for _, _, made, _ in every_best(results):
        known = [case.success for case in made.evidence.cases if case.success is not None]
        assert made.baseline.success in (None, sum(known) / len(known))


def test_prices_of_a_contract_change_what_unpriced_work_costs(sample: Any, knowledge: Any, results: Any) -> None:
    contract = next(c for c in discover(sample.intakes_folder) if c.contract == "Motor Claims")
    intake = read_intake(contract, contract.intakes[0], SETTINGS)
    made = results["Harbourline Mutual", "Motor Claims"].made[0][1]
    dearer = prices(
        SETTINGS, contract.settings.model_copy(update={"prices": {"usd_per_hour_of_duration": 60.0}}), contract.folder
    )
    workflow = chain_workflow(made.ranked[0][1].tasks, made.context.draft.prices, intake)
    plain, timed = (evaluate(workflow, cost, SETTINGS.reward) for cost in (SETTINGS.cost, dearer))
    assert timed.cost_time_usd == pytest.approx(60 * plain.duration_ms / 3_600_000)
    assert timed.cost_usd == pytest.approx(plain.cost_usd + timed.cost_time_usd)


def test_near_cases_weigh_less_with_distance_and_refusals_are_left_out(knowledge: Any) -> None:
    vectors = knowledge.snapshot.implementation_vectors.slice(0, 50)
    cases = knowledge.snapshot.cases
    refusals = [False if n % 2 else None for n in range(len(cases))]
    book = CaseRetriever(
        cases.set_column(cases.schema.get_field_index("expected_outcome"), "expected_outcome", [refusals]), vectors
    )
    found = book.near(np.asarray(vectors["vector"][0].as_py(), np.float32), None, 40)
    assert 0 < len(found) < 40
    assert [c.weight for c in found] == sorted((c.weight for c in found), reverse=True)
    assert all(c.expected_outcome is None for c in found)


def test_the_intervals_of_rewards_hold_what_the_truth_earns(results: Any, truth: Any, kinds: Any) -> None:
    """What the truth earns with each is exact, for work done one step after the other as the truth has it.

    Workflows of one sample share tasks, so that they miss together: here those that send a satisfaction survey.
    """
    held, first = [], []
    for result in results.values():
        for intake, made in result.made:
            for rank, candidate in made.ranked:
                kind, starts = kinds[made.request.intention_id], candidate.evaluation.start_ms
                earned = expected_reward(truth, intake.industry, candidate.workflow, kind, starts)
                sure = candidate.confidence
                assert sure.reward_usd_p05 <= candidate.worth <= sure.reward_usd_p95
                held.append(sure.reward_usd_p05 <= earned <= sure.reward_usd_p95)
                first += held[-1:] if rank == 1 else []
    assert len(held) >= 40
    assert np.mean(held) >= 0.85
    assert np.mean(first) >= 0.9


def test_every_ranking_says_how_sure_it_is(results: Any) -> None:
    for result in results.values():
        rows = result.tables[OPTIMIZED.name].to_pylist()
        for intention in {row["intention_id"] for row in rows}:
            ranked = sorted((row for row in rows if row["intention_id"] == intention), key=lambda row: row["rank"])
            assert sum(row["best_share"] for row in ranked) == pytest.approx(1)
            assert [row["beats_next"] is None for row in ranked] == [False] * (len(ranked) - 1) + [True]
            best, *others = ranked
            assert [row["verdict"] for row in others] == [None] * len(others)
            assert best["verdict"] in ("clear", "undecided")
            if best["verdict"] == "clear":
                assert best["best_share"] >= SETTINGS.reward.clear_share
            assert (best["verdict_reason"] is None) == (best["verdict"] == "clear")
            for row, behind in pairwise(ranked):
                assert row["ahead_by"] in (*row["ranked_by"], "transitions", "id")
                if behind["reward_usd"] > row["reward_usd"] + SETTINGS.reward.quantum_usd:
                    first = row["ranked_by"].index("Reward")
                    assert row["ahead_by"] in row["ranked_by"][:first]  # what overrides the Reward is said


def test_every_intention_has_as_many_workflows_as_asked_for_that_differ_in_more_than_one_step(results: Any) -> None:
    """Steps as the tables tell them: which task, by which kind of actor, model and group."""
    for result in results.values():
        steps = {}
        for s in result.tables[WORKFLOW_TASKS.name].to_pylist():
            if s["kind"] in ("task", "review"):
                steps.setdefault(s["workflow_id"], set()).add(
                    (s["node"], s["actor_kind"], s["model"], s["actor_group"])
                )
        rows = result.tables[OPTIMIZED.name].to_pylist()
        for intention in {row["intention_id"] for row in rows}:
            ranked = sorted((row for row in rows if row["intention_id"] == intention), key=lambda row: row["rank"])
            ids = [row["workflow_id"] for row in ranked]
            apart = [
                [max(len(steps[a] - steps[b]), len(steps[b] - steps[a])) for b in ids[:place]]
                for place, a in enumerate(ids)
            ]
            assert [row["differs_by"] for row in ranked] == [min(swaps, default=None) for swaps in apart]
            assert all(row["differs_by"] >= 2 for row in ranked[1:])
            assert (len(ranked), ranked[0]["fewer"]) == (SETTINGS.generation.k, None)
            worths = [(not row["has_optional"], row["reward_usd"]) for row in ranked]
            assert worths == sorted(worths, reverse=True)


def test_rank_one_is_the_same_however_different_the_others_must_be(
    sample: Any, lake: Any, results: Any, cached: CachedEncoder, tmp_path: Path
) -> None:
    (contract,) = [c for c in discover(sample.intakes_folder) if c.contract == "Household Claims"]
    firsts = lambda found: [(made.ranked[0][1].id, made.ranked[0][1].evaluation) for _, made in found.made]
    for least in (1, 4):
        settings = SETTINGS.model_copy(
            update={"generation": SETTINGS.generation.model_copy(update={"least_swaps": least})}
        )
        with ContractGenerator(lake, settings, cached, tmp_path / str(least)) as generator:
            found = generator(contract)
        assert firsts(found) == firsts(results["Castellan Insurance", "Household Claims"])
        assert all(c.differs_by >= least for _, made in found.made for _, c in made.ranked[1:])


def test_a_stated_review_stands_in_the_tables_and_in_the_reports(sample: Any, generate: Any, tmp_path: Path) -> None:
    shutil.copytree(
        sample.intakes_folder / "harbourline-mutual" / "motor-claims", tmp_path / "harbourline-mutual" / "motor-claims"
    )
    (contract,) = discover(tmp_path)
    with (contract.folder / "contract.toml").open("a") as file:
        file.write('\n[review]\nactor_kind = "human"\np = 0.99\nq = 0.8\ncost_usd = 0.5\nduration_ms = 60000\n')
    (contract,) = discover(tmp_path)
    result = generate(contract)
    assert result.failed == []
    steps = result.tables[WORKFLOW_TASKS.name].to_pylist()
    for row in result.tables[OPTIMIZED.name].to_pylist():
        mine = [s for s in steps if s["workflow_id"] == row["workflow_id"]]
        reviews = [s for s in mine if s["kind"] == "review"]
        assert row["reviews"] == len(reviews) > 0
        assert row["tasks"] == sum(s["kind"] == "task" for s in mine)
        assert {(s["task_id"], s["origin"], s["q"], s["cost_usd"]) for s in reviews} == {(None, "review", 0.8, 0.5)}
        assert [s["title"] for s in reviews] == [f"Review: {mine[s['position'] - 1]['title']}" for s in reviews]
        assert sum(c["kind"] == "review" and c["earned_usd"] > 0 for c in row["choices"]) == row["reviews"]
        edges = [e for e in result.tables["workflows/edges"].to_pylist() if e["workflow_id"] == row["workflow_id"]]
        assert len(edges) == len(mine) - 1
        assert {e["origin"] for e in edges if "_review" in e["src"] + e["dst"]} == {"review"}
    cost = report_tables(result)["reports/cost"].to_pylist()
    (line,) = [r for r in cost if r["task_id"] == "review"]
    best = [m.ranked[0][1] for _, m in result.made]
    assert line["cost_usd"] == pytest.approx(0.5 * sum(t.kind == "review" for c in best for t in c.workflow.tasks))
    assert sum(r["cost_usd"] for r in cost) == pytest.approx(sum(c.evaluation.cost_usd for c in best))


def test_changed_rows_need_a_raised_algorithm_version(
    lake: Any, results: Any, pytestconfig: Any, request: pytest.FixtureRequest
) -> None:
    """Where a stage publishes other rows for the sample and its version is as before, results made by both look
    current.
    """
    found = published_rows.published(lake, results)
    file = published_rows.FILE
    recorded = json.loads(file.read_text("utf-8"))
    writes = pytestconfig.getoption("write_algorithm_versions")
    problem = published_rows.problem(recorded, found, f"pytest '{request.node.nodeid}' --write-algorithm-versions")
    if writes and (problem is None or "is not of the versions" in problem):
        published_rows.write(found)
        return
    assert problem is None, problem
