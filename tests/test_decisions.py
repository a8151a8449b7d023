"""Decisions over nights on the sample: accepted, rejected and edited workflows, evidence for similar intakes, and what
is shown.
"""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from opus_pipelines.cli.main import main
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.generation.results.contract import publish_contract
from opus_pipelines.generation.results.staleness import is_current
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.reporting.explain import explanation
from opus_pipelines.reporting.views import connect, write_views_sql
from opus_pipelines.reporting.workflows import read_workflow
from opus_pipelines.workflow.files import as_yaml
from tests.generation.contracts import ContractGenerator

pytestmark = pytest.mark.model
NOW = datetime(2026, 1, 31, tzinfo=UTC)
CLIENT, CONTRACT = "Harbourline Mutual", "Motor Claims"


class Desk:
    """The sample's motor claims under a lead's hands; `night` makes the contract anew, as `opus generate` does."""

    def __init__(self, lake: Lake, intakes: Path, encoder: TextEncoder) -> None:
        self.lake, self.intakes = lake, intakes
        self.encoder = CachedEncoder(encoder, lake.kept / "embeddings")

    def night(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Ranked rows by intake and rank, once the contract is generated and published."""
        (contract,) = contracts_of(self.lake, self.intakes)
        with (
            TemporaryDirectory() as folder,
            ContractGenerator(self.lake, Settings(), self.encoder, Path(folder)) as generate,
        ):
            result = generate(contract)
        publish_contract(self.lake, result, NOW)
        write_views_sql(self.lake)
        assert is_current(self.lake, contract, result.snapshot, Settings())
        return self.ranked()

    def ranked(self) -> dict[tuple[str, int], dict[str, Any]]:
        found = connect(self.lake).execute(
            "SELECT i.folder, o.* FROM workflows_optimized AS o JOIN generation_intakes AS i USING "
            "(client, contract, intake_id) "
            f"WHERE client = '{CLIENT}'"
        )
        names = [column[0] for column in found.description]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        return {(row["folder"], row["rank"]): row for row in rows}

    def decide(self, workflow: object, *words: str) -> int:
        return main(["--lake", str(self.lake.root), "decide", str(workflow), *words])


@pytest.fixture(scope="module")
def first_night(
    sample_lake: Lake, sample_files: Any, encoder: TextEncoder, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the lake after the first night, and the intakes of its contract."""
    root, place = tmp_path_factory.mktemp("decisions"), Path("harbourline-mutual", "motor-claims")
    shutil.copytree(sample_lake.root, root / "lake")
    for name in (ROUNDABOUT, CAR_PARK, WINDSCREEN):
        shutil.copytree(sample_files.intakes_folder / place / name, root / "intakes" / place / name)
    for other in (sample_files.intakes_folder / place).iterdir():
        if not (other / "intake.toml").is_file():
            copy = shutil.copytree if other.is_dir() else shutil.copy
            copy(other, root / "intakes" / place / other.name)
    Desk(Lake(root / "lake"), root / "intakes", encoder).night()
    return root


@pytest.fixture
def desk(first_night: Path, encoder: TextEncoder, tmp_path: Path) -> Desk:
    """A copy of it for one test."""
    shutil.copytree(first_night, tmp_path, dirs_exist_ok=True)
    return Desk(Lake(tmp_path / "lake"), tmp_path / "intakes", encoder)


ROUNDABOUT, CAR_PARK, WINDSCREEN = (
    "2025-09-04-roundabout-collision",
    "2025-09-09-car-park-collision",
    "2025-09-02-chipped-windscreen",
)


def test_decisions_stand_beside_the_ranking_and_over_the_nights(desk: Desk, tmp_path: Path) -> None:
    before = desk.ranked()
    accepted, rejected, changed = before[WINDSCREEN, 3], before[ROUNDABOUT, 1], before[CAR_PARK, 1]
    assert desk.decide(accepted["workflow_id"], "accept", "--why", "the clerks know it", "--by", "Ines") == 0
    assert desk.decide(rejected["workflow_id"], "reject") == 0
    file = tmp_path / "mine.yaml"
    file.write_text(
        yaml.safe_dump(
            with_step(yaml.safe_load(as_yaml(read_workflow(connect(desk.lake), str(changed["workflow_id"])).file)))
        )
    )
    assert desk.decide(changed["workflow_id"], "edit", str(file), "--by", "Ines") == 0

    after = desk.night()
    first = after[WINDSCREEN, 1]
    assert (first["workflow_id"], first["decision"], first["decided_why"]) == (
        accepted["workflow_id"],
        "accepted",
        "the clerks know it",
    )
    assert first["better_workflow_id"] == before[WINDSCREEN, 1]["workflow_id"]
    assert first["better_by_usd"] == pytest.approx(before[WINDSCREEN, 1]["reward_usd"] - accepted["reward_usd"])
    assert [first[name] for name in FIGURES] == [accepted[name] for name in FIGURES]
    assert rejected["workflow_id"] not in {row["workflow_id"] for row in after.values()}
    assert after[ROUNDABOUT, 1]["workflow_id"] == before[ROUNDABOUT, 2]["workflow_id"]
    own = after[CAR_PARK, 1]
    assert (own["decision"], own["decided_by"], own["tasks"]) == ("edited", "Ines", changed["tasks"] + 1)
    titles = (
        connect(desk.lake)
        .execute(
            "SELECT title FROM workflows_tasks WHERE workflow_id = ? AND kind = 'task' ORDER BY position",
            [own["workflow_id"]],
        )
        .fetchall()
    )
    assert ("Request Missing Documents",) in titles

    connection = connect(desk.lake)
    told = explanation(connection, str(first["workflow_id"]))
    assert "accepted by Ines: the clerks know it; " in told
    assert "it was accepted by a person" in told
    counted = connection.sql(
        "SELECT DISTINCT d.workflow_id FROM generation_neighbours AS n JOIN decisions AS d ON "
        "d.decision_id = n.implementation_id"
    ).fetchall()
    assert (
        changed["workflow_id"],
    ) in counted  # the collisions are alike: one's edited workflow is a case for the other
    assert (rejected["workflow_id"],) not in counted
    assert {row["decision_number"] for row in after.values() if row["decision"]} == {1, 3}


@pytest.mark.nightly
def test_a_rejection_taken_back_gives_the_first_ranking_again(desk: Desk) -> None:
    before = desk.ranked()
    first = before[ROUNDABOUT, 1]["workflow_id"]
    assert desk.decide(first, "reject") == 0
    assert desk.night()[ROUNDABOUT, 1]["workflow_id"] != first
    assert desk.decide(first, "accept") == 0
    again = desk.night()
    assert (again[ROUNDABOUT, 1]["workflow_id"], again[ROUNDABOUT, 1]["better_workflow_id"]) == (first, None)


@pytest.mark.nightly
def test_a_workflow_without_a_critical_task_is_ranked_when_a_person_wrote_it_and_says_what_it_lacks(
    desk: Desk, tmp_path: Path
) -> None:
    first = desk.ranked()[WINDSCREEN, 1]
    whole = yaml.safe_load(as_yaml(read_workflow(connect(desk.lake), str(first["workflow_id"])).file))
    file = tmp_path / "short.yaml"
    file.write_text(yaml.safe_dump(without_step(whole, "Verify Coverage")))
    assert desk.decide(first["workflow_id"], "edit", str(file)) == 0
    row = desk.night()[WINDSCREEN, 1]
    assert (row["decision"], row["tasks"], row["feasible"]) == ("edited", first["tasks"] - 1, False)
    assert any("'Verify Coverage' is left out" in violation for violation in row["violations"])


FIGURES = ("reward_usd", "cost_usd", "success_probability", "duration_ms", "penalty", "observed_share")


def without_step(file: dict[str, Any], title: str) -> dict[str, Any]:
    """A person's change: a step is taken out, and what waited for it waits for what it waited for."""
    (gone,) = [task["id"] for task in file["tasks"] if task["title"] == title]
    before, behind = ([edge[1 - end] for edge in file["edges"] if edge[end] == gone] for end in (1, 0))
    file["tasks"] = [task for task in file["tasks"] if task["id"] != gone]
    file["edges"] = [edge for edge in file["edges"] if gone not in edge] + [[a, b] for a in before for b in behind]
    return file


def with_step(file: dict[str, Any]) -> dict[str, Any]:
    """A person's change: documents are asked for at the very end."""
    ends = [edge for edge in file["edges"] if edge[1] == file["outputs"][0]["id"]]
    file["tasks"].append({"id": "mine", "title": "Request Missing Documents"})
    file["edges"] = (
        [edge for edge in file["edges"] if edge not in ends]
        + [[src, "mine"] for src, _ in ends]
        + [["mine", ends[0][1]]]
    )
    return file
