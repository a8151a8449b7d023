"""`opus forget` and the answers of language models: a client's own, and those in which a word of it stands."""

from pathlib import Path

from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lake.search import Word
from opus_pipelines.wkg.upkeep.client_traces import ANSWERS, remove_answers


def keep(lake: Lake, client: str, name: str, text: str) -> Path:
    file = lake.root / ANSWERS / f"client_key={slug(client)}" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{"workflows": [["{text}"]]}}')
    return file


def test_answers_of_a_client_and_with_its_words_are_removed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    own, named = keep(lake, "Zephyr & Sons", "a", "Pay"), keep(lake, "Bolt", "b", "Zephyr settlement")
    other = keep(lake, "Bolt", "c", "Pay")
    assert remove_answers(lake, "Zephyr & Sons", [Word("task", "Zephyr settlement")]) == 2
    assert [own.exists(), named.exists(), other.exists()] == [False, False, True]


def test_a_lake_without_answers_has_none_to_remove(tmp_path: Path) -> None:
    assert remove_answers(Lake(tmp_path), "Zephyr", [Word("task", "x")]) == 0
