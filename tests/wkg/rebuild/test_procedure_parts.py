"""Procedures of history: each distinct text once, its parts with the cases that asked for them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.core.schemas import IMPLEMENTATIONS, PROCEDURE_VECTORS, PROCEDURES, TASKS
from opus_pipelines.lake.layout import dataset_folder, read_table, write_table
from opus_pipelines.wkg.rebuild.cases import write_procedures

TEXT = (
    "* pay_invoice:\n- The invoice is approved by someone.\n\n* close_file:\n- Either of these:\n "
    " - The file is empty of letters.\n"
)


class Letters:
    """Counts of letters, unit length."""

    name, max_tokens, dimension = "letters", 64, 26

    def encode(self, texts: list[str], progress: Any = None) -> Any:
        rows = np.array([[t.lower().count(chr(97 + n)) for n in range(26)] for t in texts], np.float32).reshape(-1, 26)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@pytest.fixture
def folders(tmp_path: Path) -> Any:
    rows = [
        {"implementation_id": "i1", "title": "pay_invoice", "description": "please pay", "process_context": TEXT},
        {"implementation_id": "i2", "title": None, "description": "close the file, please", "process_context": TEXT},
        {"implementation_id": "i3", "title": "pay invoice", "description": None, "process_context": TEXT},
        {"implementation_id": "i4", "title": "other", "description": "x", "process_context": None},
    ]
    write_table(IMPLEMENTATIONS, pa.Table.from_pylist(rows, schema=IMPLEMENTATIONS.schema), tmp_path / "source")
    tasks = pa.Table.from_pylist([{"task_id": "t1", "title": "Pay Invoice"}], schema=TASKS.schema)
    write_table(TASKS, tasks, dataset_folder(tmp_path / "snapshot", TASKS))
    return tmp_path / "source", tmp_path / "snapshot"


def test_a_text_is_kept_once_with_who_asked_for_which_part(folders: tuple[Path, ...]) -> None:
    source, snapshot = folders
    assert write_procedures([source], snapshot, Letters()) == {"wkg/procedures": 2, "wkg/procedure_vectors": 8}
    pay, close = read_table(PROCEDURES, dataset_folder(snapshot, PROCEDURES)).to_pylist()
    assert (pay["head"], pay["implementations"], pay["requests"]) == (
        "pay_invoice",
        ["i1", "i3"],
        ["pay invoice", "please pay"],
    )
    assert (close["head"], close["implementations"], close["either"]) == ("close_file", ["i2"], [0])
    texts = read_table(PROCEDURE_VECTORS, dataset_folder(snapshot, PROCEDURE_VECTORS))["text"].to_pylist()
    assert texts == [
        "The file is empty of letters.",
        "The invoice is approved by someone.",
        "close file",
        "close the file, please",
        "file",
        "invoice",
        "pay invoice",
        "please pay",
    ]


def test_history_without_procedures_leaves_empty_tables(folders: tuple[Path, ...], tmp_path: Path) -> None:
    _, snapshot = folders
    assert write_procedures([], snapshot, Letters()) == {"wkg/procedures": 0, "wkg/procedure_vectors": 0}
    assert read_table(PROCEDURES, dataset_folder(snapshot, PROCEDURES)).num_rows == 0
