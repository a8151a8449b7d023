"""What Dagster is told, as literals: a change of the asset graph must show in review."""

import warnings
from pathlib import Path

import dagster as dg
import pytest

from opus_pipelines.core.schemas import DATASETS
from opus_pipelines.core.settings import Paths, Settings

DEPS = {
    "inputs/history": [],
    "inputs/intakes": [],
    "inputs/settings": [],
    "history/implementations": ["inputs/history"],
    "history/rejects": ["inputs/history"],
    "history/sources": ["inputs/history"],
    "wkg/tasks": ["history/implementations", "inputs/settings"],
    "wkg/task_implementations": ["history/implementations", "inputs/settings"],
    "wkg/edges": ["history/implementations", "inputs/settings"],
    "wkg/needs": ["history/implementations", "inputs/settings"],
    "wkg/task_aliases": ["history/implementations", "inputs/settings"],
    "wkg/variants": ["history/implementations", "inputs/settings"],
    "wkg/waits": ["history/implementations", "inputs/settings"],
    "wkg/contexts": ["history/implementations", "inputs/settings"],
    "wkg/cases": ["history/implementations", "inputs/settings"],
    "wkg/embeddings": ["wkg/tasks"],
    "wkg/implementation_vectors": ["history/implementations", "wkg/cases"],
    "wkg/procedures": ["history/implementations"],
    "wkg/procedure_vectors": ["wkg/procedures", "wkg/tasks"],
    "wkg/index": ["wkg/embeddings"],
    "wkg/snapshot": [
        "wkg/cases",
        "wkg/contexts",
        "wkg/edges",
        "wkg/embeddings",
        "wkg/implementation_vectors",
        "wkg/index",
        "wkg/needs",
        "wkg/procedure_vectors",
        "wkg/procedures",
        "wkg/task_aliases",
        "wkg/task_implementations",
        "wkg/tasks",
        "wkg/variants",
        "wkg/waits",
    ],
    "wkg/changes": ["history/implementations", "wkg/cases", "wkg/edges", "wkg/needs", "wkg/tasks"],
    "models/pointer": ["wkg/snapshot"],
    "flows/catalogue": ["wkg/snapshot"],
    "flows/flows": ["flows/catalogue"],
    "flows/scores": ["flows/flows"],
    "ops/runs": [],
    "forecasts/cases": ["wkg/snapshot"],
    "forecasts/limits": ["wkg/snapshot"],
    "forecasts/next_steps": ["wkg/snapshot"],
    "generation/intakes": ["inputs/intakes", "wkg/snapshot"],
    "generation/intentions": ["generation/intakes", "wkg/snapshot"],
    "generation/neighbours": ["generation/intentions"],
    "generation/subgraph_tasks": ["generation/intentions"],
    "generation/subgraph_edges": ["generation/subgraph_tasks"],
    "generation/sequences": ["generation/neighbours", "generation/subgraph_edges", "generation/subgraph_tasks"],
    "generation/wfg_nodes": ["generation/sequences"],
    "generation/wfg_edges": ["generation/sequences"],
    "generation/runs": ["wkg/snapshot"],
    "workflows/optimized": ["generation/wfg_edges", "generation/wfg_nodes"],
    "workflows/tasks": ["workflows/optimized"],
    "workflows/edges": ["workflows/optimized"],
    "workflows/expected_flow": ["generation/neighbours", "workflows/optimized"],
    "workflows/changes": ["generation/intakes", "generation/neighbours", "workflows/optimized", "workflows/tasks"],
    "reports/cost": ["workflows/optimized", "workflows/tasks"],
    "reports/reward": ["workflows/optimized"],
    "workflows/current": [
        "generation/runs",
        "reports/cost",
        "reports/reward",
        "workflows/changes",
        "workflows/edges",
        "workflows/expected_flow",
        "workflows/optimized",
        "workflows/tasks",
    ],
}
PARTITIONED = ("generation", "workflows", "reports", "flows")
BLOCKING = {
    "wkg/contexts": ["every_task_exists", "keys_are_unique", "schema"],
    "history/sources": ["cases_are_not_lost", "implementations_as_counted", "records_add_up"],
    "wkg/tasks": [
        "drift_of_tasks",
        "every_figure_could_be_told",
        "every_task_has_a_name_in_history",
        "figures_are_finite",
        "intervals_hold_their_figures",
        "keys_are_unique",
        "missing_figures_have_a_reason",
        "no_industry_or_source_vanished",
        "no_two_clients_look_alike",
        "probabilities_lie_in_0_1",
        "schema",
        "task_implementations_add_up_to_the_cases",
    ],
    "wkg/task_implementations": [
        "every_figure_could_be_told",
        "every_task_exists",
        "figures_are_finite",
        "intervals_hold_their_figures",
        "keys_are_unique",
        "missing_figures_have_a_reason",
        "probabilities_lie_in_0_1",
        "quantiles_never_fall",
        "schema",
        "ways_add_up_to_the_cases",
    ],
    "wkg/edges": [
        "drift_of_edges",
        "drift_of_transition_shares",
        "every_task_exists",
        "figures_are_finite",
        "intervals_hold_their_figures",
        "keys_are_unique",
        "no_edge_has_more_implementations_than_transitions",
        "probabilities_lie_in_0_1",
        "probabilities_out_of_a_task_add_up_to_1",
        "schema",
    ],
    "wkg/needs": [
        "every_figure_could_be_told",
        "every_task_exists",
        "figures_are_finite",
        "intervals_hold_their_figures",
        "keys_are_unique",
        "missing_figures_have_a_reason",
        "schema",
        "successes_are_among_the_cases",
    ],
    "wkg/task_aliases": ["every_task_exists", "keys_are_unique", "schema"],
    "wkg/variants": ["every_task_exists", "keys_are_unique", "schema", "variants_add_up_to_the_cases"],
    "wkg/waits": [
        "figures_are_finite",
        "intervals_hold_their_figures",
        "keys_are_unique",
        "no_figure_is_missing",
        "quantiles_never_fall",
        "schema",
    ],
    "wkg/cases": ["every_task_exists", "figures_are_finite", "keys_are_unique", "probabilities_lie_in_0_1", "schema"],
    "wkg/embeddings": [
        "every_task_exists",
        "every_task_has_a_vector",
        "keys_are_unique",
        "recall_at_10_against_exact_search",
        "schema",
        "the_index_holds_every_vector",
    ],
    "wkg/implementation_vectors": ["keys_are_unique", "recall_at_10_against_exact_search", "schema"],
    "wkg/procedures": ["keys_are_unique", "schema"],
    "wkg/procedure_vectors": ["keys_are_unique", "schema"],
    "generation/intakes": ["every_intake_has_a_row", "schema"],
    "generation/intentions": ["schema"],
    "generation/neighbours": ["schema"],
    "generation/subgraph_tasks": ["schema"],
    "generation/subgraph_edges": ["probabilities", "schema"],
    "generation/sequences": ["schema"],
    "generation/wfg_nodes": ["schema"],
    "generation/wfg_edges": ["probabilities", "schema"],
    "generation/runs": ["schema"],
    "workflows/optimized": ["probabilities", "ranks_without_gaps", "schema"],
    "workflows/tasks": ["probabilities", "schema"],
    "workflows/edges": ["ends_are_nodes", "probabilities", "schema"],
    "workflows/expected_flow": ["probabilities", "schema"],
    "reports/cost": ["probabilities", "schema"],
    "reports/reward": ["probabilities", "schema"],
}


@pytest.fixture(scope="module")
def defs(tmp_path_factory: pytest.TempPathFactory) -> dg.Definitions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BackfillPolicy is still in beta
        from opus_pipelines.definitions import build_defs

    return build_defs(Settings(paths=Paths(lake=tmp_path_factory.mktemp("lake"))))


@pytest.fixture(scope="module")
def nodes(defs: dg.Definitions) -> dict[str, object]:
    graph = defs.resolve_asset_graph()
    return {node.key.to_user_string(): node for node in graph.asset_nodes}


@pytest.mark.long
def test_definitions_load(defs: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(defs)


def test_assets_and_lineage(nodes: dict) -> None:
    assert {name: sorted(p.to_user_string() for p in node.parent_keys) for name, node in nodes.items()} == DEPS


def test_every_dataset_is_an_asset_with_its_schema(nodes: dict) -> None:
    # A person decides, and calls `opus evaluate`, `opus flow compare` and `opus program`: no run makes them.
    by_people = {"decisions"} | {name for name in DATASETS if name.startswith(("programs/", "evaluations/"))}
    assert set(DATASETS) - by_people <= set(nodes)
    for name, dataset in ((n, d) for n, d in DATASETS.items() if n not in by_people):
        schema = nodes[name].metadata["dagster/column_schema"]
        assert [(c.name, c.type) for c in schema.columns] == [(c.name, c.type_name) for c in dataset.columns]


def test_owners_kinds_and_partitions(nodes: dict) -> None:
    for name, node in nodes.items():
        assert node.owners == ["team:opus"]
        assert node.description
        assert node.group_name == {"models/pointer": "training"}.get(name, name.split("/")[0])
        if name.split("/")[0] not in ("inputs", "ops"):
            assert node.code_version
        assert node.kinds
        partitions = node.partitions_def.name if node.partitions_def else None
        of_contracts = name.split("/")[0] in PARTITIONED or name == "inputs/intakes"
        assert partitions == ("contract" if of_contracts else None)


def test_blocking_checks(defs: dg.Definitions) -> None:
    found: dict[str, list[str]] = {}
    for node in defs.resolve_asset_graph().asset_check_keys:
        spec = defs.resolve_asset_graph().get_check_spec(node)
        of_contracts = node.asset_key.path[0] in PARTITIONED
        assert (spec.partitions_def is not None) == of_contracts, "each contract has results of its own"
        if spec.blocking:
            found.setdefault(node.asset_key.to_user_string(), []).append(node.name)
    assert {name: sorted(checks) for name, checks in found.items()} == BLOCKING


def test_jobs_and_the_nightly_schedule(defs: dg.Definitions, tmp_path: Path) -> None:
    assert {job.name for job in defs.resolve_all_job_defs()} == {"rebuild", "generate", "train", "flows", "__ASSET_JOB"}
    schedule = defs.resolve_schedule_def("nightly")
    assert (schedule.cron_schedule, schedule.execution_timezone, schedule.job_name) == ("0 2 * * *", "UTC", "rebuild")
    schedule = defs.resolve_schedule_def("weekly")
    assert (schedule.cron_schedule, schedule.execution_timezone, schedule.job_name) == ("0 4 * * 0", "UTC", "train")
    assert {job.executor_def.name for job in defs.resolve_all_job_defs()} == {"in_process"}
