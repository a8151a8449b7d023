"""What stands outside the body of a document sets nothing, unless a setting names it."""

from pathlib import Path
from typing import Any

import pptx
import pytest

from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.contract_settings import ContractSettings
from opus_pipelines.intakes.elements import contract_elements
from opus_pipelines.intakes.intake import discover, read_intake
from opus_pipelines.intakes.requirements.rules import rules_of

RULE = "The survey must always be sent."
PAGE = f"<p>Claims come in.</p><details><summary>More</summary><p>{RULE}</p></details>"


def deck(saved: Any) -> Any:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "How we pay"
    slide.notes_slide.notes_text_frame.text = RULE
    return saved(made)


@pytest.fixture(scope="module")
def documents(saved: Any, mail: Any, pdf: Any) -> dict[str, tuple[str, bytes]]:
    scan = "/Resources << /XObject << /I 6 0 R >> /Font"
    picture = "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray"
    layer = f"x) Tj ET q 612 0 0 792 0 0 cm /I Do Q BT 3 Tr /F1 12 Tf 72 400 Td ({RULE}"
    page = pdf(layer, extra=f"{picture} /Length 1 >>\nstream\n0\nendstream")
    return {
        "notes": ("a.pptx", deck(saved)),
        "subject": ("a.eml", mail("Claims come in.", subject=RULE)),
        "details": ("a.html", PAGE.encode()),
        "scan_text": ("a.pdf", page.replace(b"/Resources << /Font", scan.encode(), 1)),
        "split_words": ("a.txt", "The sur\u200bvey must always be sent.".encode()),
    }


@pytest.mark.parametrize("kind", ["notes", "subject", "details", "scan_text", "split_words"])
def test_what_stands_outside_the_body_is_read_where_the_contract_says_so(
    documents: dict[str, tuple[str, bytes]], tmp_path: Path, kind: str
) -> None:
    name, data = documents[kind]
    intake = tmp_path / "client" / "claims" / "one"
    for role in ("input", "process"):
        (intake / role).mkdir(parents=True)
        (intake / role / name).write_bytes(data)
    settings = tmp_path / "client" / "claims" / "contract.toml"

    def read(stated: str) -> Any:
        settings.write_text(stated)
        (contract,) = discover(tmp_path)
        asked, procedure = read_intake(contract, intake, Settings()).elements
        rules = [rule.sentence.text for rule in rules_of([procedure])]
        return "survey" in (asked.text or ""), any("survey" in rule for rule in rules), procedure.left_out or ""

    found, binds, left_out = read("")
    assert (found, binds, "survey" in left_out) == (True, False, True)
    found, binds, left_out = read(f'[documents]\nalso_read = ["{kind}"]\n')
    assert (found, "survey" in left_out) == (True, False)
    assert binds or kind == "subject"  # "Subject: ..." is read, and is no sentence that obliges


def test_the_documents_of_a_contract_follow_its_setting(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    (without,), (with_it,) = contract_elements(tmp_path), contract_elements(tmp_path, ["details"])
    assert ("survey" in (without.text or ""), "survey" in (with_it.text or "")) == (False, True)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="also_read"):
        ContractSettings.model_validate({"documents": {"also_read": ["comments"]}})
