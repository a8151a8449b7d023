"""The file of the intakes of a chunk."""

from pathlib import Path

import pyarrow as pa

from opus_pipelines.intakes.catalogues.entries import Catalogue, CatalogueFile, DeclaredTask, LeftOut
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.stored import INTAKES, Inherited, Unread, read_inherited, read_intakes, write_intakes

DOCUMENT = Element("e1", "contract", "text", "sop.md", "text/markdown", "Pay first.", 10, "ab", None)
CATALOGUE = Catalogue(
    (DeclaredTask("pay_invoice", "tools.json", 1, "Pays it.", ("invoice",), ("receipt",), 0.25, "code"),),
    (CatalogueFile("tools.json", "a list", 90, "cd"),),
    (LeftOut("tools.json", 2, None, "it has no name"),),
)
INTAKE = Intake("k1", "order-1", "Chairs", [DOCUMENT])


def test_what_is_written_is_read_again_in_order(tmp_path: Path) -> None:
    found = [("order-2", Unread("k2", "its process was ended by signal 9")), ("order-1", INTAKE)]
    inherited = Inherited((DOCUMENT,), CATALOGUE)
    write_intakes(tmp_path, inherited, found)
    assert read_intakes(tmp_path) == found
    assert read_inherited(tmp_path) == inherited


def test_the_file_has_a_row_for_each_intake(tmp_path: Path) -> None:
    write_intakes(tmp_path, Inherited((), Catalogue()), [("order-1", INTAKE), ("order-2", Unread("k2", "it hangs"))])
    with pa.ipc.open_file(tmp_path / INTAKES) as file:
        table = file.read_all()
    assert table.column_names == ["name", "intake", "intake_id", "reason"]
    assert table["name"].to_pylist() == ["order-1", "order-2"]
    assert table["intake_id"].to_pylist() == [None, "k2"]
    assert table["intake"].is_null().to_pylist() == [False, True]
