"""Likeness with the real encoder: what must merge, what must never, and the sample's truth."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.quality.sample.write import write_sample
from opus_pipelines.wkg.task_matching.resolve import NightlyResolution, Resolution

pytestmark = pytest.mark.model
Resolve = Callable[..., Resolution]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


@pytest.fixture
def together(lake: Lake, history: Any, encoder: Encoder) -> Callable[..., list[set[str]]]:
    """together(a, b, ...): sources of steps (name, or name and what is said of it) as merged tasks of more than one
    key.
    """

    def run(*sources: list[Any], kind: str = "executed", **wkg: Any) -> list[set[str]]:
        written = []
        for letter, steps in zip("abcdef", sources, strict=False):
            cases = steps if isinstance(steps[0], list) else [steps] * 3
            rows = [history.case(i, [_step(history, s) for s in case], kind=kind) for i, case in enumerate(cases)]
            written.append(history.write(lake, letter, rows))
        aliases = NightlyResolution(lake, Settings(wkg=wkg), written).resolution(lambda: encoder).aliases.to_pylist()
        tasks: dict[str, set[str]] = {}
        for row in aliases:
            tasks.setdefault(row["task_id"], set()).add(f"{row['source']}/{row['task_key']}")
        return sorted((keys for keys in tasks.values() if len(keys) > 1), key=sorted)

    return run


def _step(history: Any, said: Any) -> dict[str, Any]:
    name, description = said if isinstance(said, tuple) else (said, None)
    return history.step(name, description=description)


ASSESS = "Compare the claim with the policy and note what speaks for and against it."
OPPOSITES = [
    ("Approve claim", "Reject claim"),
    ("Send invoice", "Receive invoice"),
    ("Step 1", "Step 2"),
    ("Open account", "Close account"),
    ("Increase limit", "Decrease limit"),
    ("Lock user", "Unlock user"),
    ("Accept offer", "Decline offer"),
    ("Inform buyer", "Inform seller"),
    ("Claim approved", "Claim not approved"),
    ("Approve invoice over 1000", "Approve invoice under 1000"),
    ("Check in", "Check out"),
    ("Notify employee", "Notify employer"),
    ("Inform payer", "Inform payee"),
    ("Enable alert", "Disable alert"),
    ("Upload file", "Download file"),
    ("W_Nabellen offertes", "W_Nabellen incomplete dossiers"),
    ("Rechnung senden", "Rechnung empfangen"),
    ("Aanvraag goedkeuren", "Aanvraag afkeuren"),
    ("Antrag annehmen", "Antrag ablehnen"),
    ("Aprobar solicitud", "Rechazar solicitud"),
    ("Approuver la demande", "Rejeter la demande"),
    ("Request For Payment APPROVED by SUPERVISOR", "Request For Payment REJECTED by SUPERVISOR"),
    ("HTTP Request", "HTTP Request1"),
    ("Customer informs supplier", "Supplier informs customer"),
    ("Level 1 support", "Level 2 support"),
    ("批准申请", "拒绝申请"),
]


@pytest.mark.parametrize("pair", OPPOSITES, ids=lambda pair: pair[0])
def test_opposites_in_the_same_place_stay_apart(together: Callable[..., list[set[str]]], pair: tuple[str, str]) -> None:
    one, other = (["Register", name, "Archive"] for name in pair)
    assert together(one, other) == [{"a/Archive", "b/Archive"}, {"a/Register", "b/Register"}]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("Grant loan", "Refuse loan"), ("Say yes to the request in writing.", "Say no to the request in writing.")),
        (
            ("Approve claim", "Reject claim"),
            ("Approve the claim and record the reason.", "Reject the claim and record the reason."),
        ),
        (
            ("Hand over", "Take over"),
            ("Release the goods to the carrier at a gate.", "Take the goods over from the carrier at a gate."),
        ),
        (("Lock user", "Unlock user"), ("Change the state of the account in the directory.",) * 2),
        (("Level 1", "Level 2"), ("Look at the request and answer it if you can.",) * 2),
        (("Book room", "Print badge"), ("={{ $json.chatInput.message.text.value }}",) * 2),
        (("Book room", "Print badge"), ("See the manual.",) * 2),
    ],
)
def test_what_is_said_must_be_the_same_and_tell_something(
    together: Callable[..., list[set[str]]], names: tuple[str, str], said: tuple[str, str]
) -> None:
    one, other = (["Register", step, "Archive"] for step in zip(names, said, strict=True))
    assert together(one, other) == [{"a/Archive", "b/Archive"}, {"a/Register", "b/Register"}]


def test_forms_of_the_same_words_merge(together: Callable[..., list[set[str]]]) -> None:
    one, other = (
        ["Send reminder", "Order goods", "Archive document"],
        ["Goods ordered", "send_reminders", "Archive documents"],
    )
    assert together(one, other) == [
        {"a/Archive document", "b/Archive documents"},
        {"a/Order goods", "b/Goods ordered"},
        {"a/Send reminder", "b/send_reminders"},
    ]
    assert together(one, other, merge="normalised") == []


def test_other_words_merge_where_the_same_is_said_and_the_place_bears_it_out(
    together: Callable[..., list[set[str]]],
) -> None:
    first = ["Register", ("Assess claim", ASSESS), "Archive"]
    assert {"a/Assess claim", "b/Second look"} in together(first, ["Register", ("Second look", ASSESS), "Archive"])
    assert together(first, ["Open", ("Second look", ASSESS), "Close"]) == []  # nothing around them agrees
    copied = ["Register", ("Second look", ASSESS), ("Third look", ASSESS), "Archive"]
    assert together(first, copied) == [
        {"a/Archive", "b/Archive"},
        {"a/Register", "b/Register"},
    ]  # said of several: it tells nothing


def test_words_that_one_source_tells_tasks_apart_by_stay_apart_everywhere(
    together: Callable[..., list[set[str]]],
) -> None:
    said = "Decide on the claim by the table and write the reason down."
    first, other = ["Register", ("Grant claim", said), "Archive"], ["Register", ("Allow claim", said), "Archive"]
    assert {"a/Grant claim", "b/Allow claim"} in together(first, other)
    assert {"a/Grant claim", "b/Allow claim"} not in together(first, other, ["Grant claim", "Allow claim"])


def test_names_of_one_source_are_different_tasks_but_each_model_has_an_author_of_its_own(
    together: Callable[..., list[set[str]]],
) -> None:
    assert together(["Send reminder", "Send reminders"], ["Pay"]) == []
    models = [["Send reminder", "Archive document"], ["Send reminders", "Archive documents"]]
    assert together(models, kind="model") == [
        {"a/Archive document", "a/Archive documents"},
        {"a/Send reminder", "a/Send reminders"},
    ]
    assert together([*models, ["Send reminder", "Send reminders"]], kind="model") == [
        {"a/Archive document", "a/Archive documents"}
    ]


def pairs(groups: dict[str, str]) -> set[frozenset[str]]:
    """Pairs of raw keys of different sources with the same task."""
    return {
        frozenset((one, other))
        for one, other in combinations(sorted(groups), 2)
        if groups[one] == groups[other] and one.split("/")[0] != other.split("/")[0]
    }


def test_the_samples_synonyms_are_found_and_nothing_else(tmp_path: Path, lake: Lake, encoder: Encoder) -> None:
    write_sample(tmp_path / "sample")
    state = read_history(lake, tmp_path / "sample" / "history", datetime(2026, 1, 1, tzinfo=UTC))
    industries = json.loads((tmp_path / "sample" / "truth.json").read_text("utf-8"))["industries"]
    truth = {
        f"{source}/{key}": f"{industry}/{task['task']}"
        for industry, said in industries.items()
        for task in said["tasks"]
        for source, key in task["keys"].items()
    }
    aliases = NightlyResolution(lake, Settings(), state.sources).resolution(lambda: encoder).aliases.to_pylist()
    found = {f"{row['source']}/{row['task_key']}": row["task_id"] for row in aliases}
    assert set(found) == set(truth)
    right = pairs(found) & pairs(truth)
    assert len(pairs(truth)) == 19
    assert len(right) / len(pairs(found)) >= 0.98
    assert len(right) / len(pairs(truth)) >= 0.90
    assert sum(row["method"] == "embedding" for row in aliases) == 8
