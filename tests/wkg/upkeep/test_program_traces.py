"""`opus forget` and workflow programs: the runs for a client, and the runs in which a word of it stands."""

from pathlib import Path

from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.interpreter import letter_cosine, run
from opus_pipelines.flows.programs.planning_set import toolbox
from opus_pipelines.flows.programs.records import publish_runs, task_of
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.search import Word
from opus_pipelines.wkg.upkeep.client_traces import clients_of, clients_of_runs, remove_program_runs
from opus_pipelines.wkg.upkeep.verify import verify
from opus_pipelines.workflow.blocks.formats.core_program import parse_core

PROGRAM = "End ::: terminal ::: Give the plan. :::\n"


def publish(lake: Lake, text: str, client: str | None) -> str:
    done = run(parse_core(PROGRAM), task_of(text, text), ToolExecutor(toolbox(), letter_cosine))
    with lake.lock():
        publish_runs(lake, [done], "plan", client)
    return done.id


def runs(lake: Lake) -> list[str]:
    return sorted(folder.name.partition("=")[2] for folder in lake.root.glob("programs/*/run_key=*"))


def test_the_runs_for_a_client_and_with_its_words_are_removed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    publish(lake, "Caption a photo", "Zephyr & Sons")
    publish(lake, "Answer the Zephyr settlement", "Bolt")
    other = publish(lake, "Translate a letter", None)
    assert clients_of_runs(lake) == clients_of(lake) == {"Bolt", "Zephyr & Sons"}
    assert remove_program_runs(lake, "Zephyr & Sons", [Word("task", "Zephyr settlement")]) == 2
    assert runs(lake) == [other, other]  # its row and its steps
    assert verify(lake).damage == []


def test_a_lake_without_programs_has_none_to_remove(tmp_path: Path) -> None:
    assert remove_program_runs(Lake(tmp_path), "Zephyr", [Word("task", "x")]) == 0


def test_a_damaged_run_is_found(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    publish(lake, "Caption a photo", None)
    file = next(lake.root.glob("programs/steps/*/*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    assert [damage.file for damage in verify(lake).damage] == [file]
