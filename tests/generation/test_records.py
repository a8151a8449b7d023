"""Records of the stages of generation, written down as plain data."""

import json
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.records import ContractTerms, Request, as_plain
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.intention import Decoded, Intention
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.evaluation.calendar import CalendarSettings


@dataclass(frozen=True)
class Nested:
    """A record with a record in it."""

    inner: "Nested | None" = None
    pairs: frozenset[tuple[str, str]] = frozenset()


def test_a_request_is_written_with_its_documents_and_its_vector() -> None:
    intention = Intention("complete", np.array([0.6, 0.8]), "a claim", {"e1": 1.0}, Decoded("a claim", (), (), ()))
    request = Request(Intake("i", "claim-1", "Claim", [], gain_usd=20.0), "n1", intention, is_only=True)
    plain = json.loads(json.dumps(as_plain(request)))
    assert plain["intention_id"] == "n1"
    assert plain["is_only"] is True
    assert (plain["intake"]["folder"], plain["intake"]["gain_usd"]) == ("claim-1", 20.0)
    assert plain["intention"]["vector"] == [0.6, 0.8]
    assert plain["intention"]["attention"] == {"e1": 1.0}


def test_sets_are_sorted_and_tuple_keys_are_texts() -> None:
    assert as_plain(Nested(pairs=frozenset({("b", "c"), ("a", "b")}))) == {
        "inner": None,
        "pairs": [["a", "b"], ["b", "c"]],
    }
    assert as_plain({("a", "b"): np.float64(0.5)}) == {"('a', 'b')": 0.5}


def test_settings_are_written_with_their_values() -> None:
    plain = as_plain(ContractTerms(Cost(usd_per_hour_of_duration=2.0), calendar=CalendarSettings()))
    assert plain["cost"]["usd_per_hour_of_duration"] == 2.0
    assert plain["review"]["allowed"] is True


def test_what_is_too_large_or_too_deep_is_named() -> None:
    assert as_plain(WorkGraph.of([], [])) == "WorkGraph"
    assert as_plain(Nested(Nested(Nested())), depth=2) == {
        "inner": {"inner": "Nested", "pairs": "frozenset of 0"},
        "pairs": [],
    }
    assert as_plain(lambda: None) == "function"
