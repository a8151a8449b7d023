"""The record of a file's edits: undo gives back every byte, and refuses a file that something else changed."""

from pathlib import Path

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.blocks.edit_files import edit_file, record_of, turns, undo


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    file = tmp_path / "flow.py"
    file.write_bytes(b"a = A()\r\n")
    return file


def test_turns_are_taken_back_one_after_another(flow: Path) -> None:
    assert edit_file(flow, b"a = A()\nb = B()\n", "Add B", ["insert b"]) == 1
    assert edit_file(flow, b"b = B()\n", "Remove A", ["delete a"]) == 2
    assert [(turn.request, turn.operations) for turn in turns(flow)] == [
        ("Add B", ("insert b",)),
        ("Remove A", ("delete a",)),
    ]
    assert [turn.request for turn in undo(flow)] == ["Remove A"]
    assert flow.read_bytes() == b"a = A()\nb = B()\n"
    assert [turn.request for turn in undo(flow)] == ["Add B"]
    assert flow.read_bytes() == b"a = A()\r\n"
    assert not record_of(flow).exists()
    with pytest.raises(InputError):
        undo(flow)


def test_several_turns_are_undone_at_once(flow: Path) -> None:
    for number in range(3):
        edit_file(flow, f"x{number} = A()\n".encode(), f"turn {number}", [])
    with pytest.raises(InputError):
        undo(flow, 4)
    assert [turn.request for turn in undo(flow, 3)] == ["turn 2", "turn 1", "turn 0"]
    assert flow.read_bytes() == b"a = A()\r\n"


def test_a_file_that_was_changed_by_hand_is_left_alone(flow: Path) -> None:
    edit_file(flow, b"b = B()\n", "Replace", [])
    flow.write_bytes(b"by = Hand()\n")
    with pytest.raises(InputError):
        undo(flow)
    assert flow.read_bytes() == b"by = Hand()\n"
    assert len(turns(flow)) == 1


def test_a_turn_before_whose_effect_the_process_was_killed_is_dropped(flow: Path) -> None:
    edit_file(flow, b"b = B()\n", "first", [])
    edit_file(flow, b"c = C()\n", "second", [])
    flow.write_bytes(b"b = B()\n")  # as if the second had been recorded, and the file not yet replaced
    assert [turn.request for turn in undo(flow)] == ["first"]
    edit_file(flow, b"d = D()\n", "third", [])
    assert [turn.request for turn in turns(flow)] == ["third"]


@pytest.mark.parametrize("text", ["{", "[1]\n", '{"request": "x"}\n', "[" * 100_000])
def test_a_record_that_is_none_is_named(flow: Path, text: str) -> None:
    record_of(flow).write_text(text)
    with pytest.raises(InputError, match=r"flow\.py\.turns"):
        undo(flow)
