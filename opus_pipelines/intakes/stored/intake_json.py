"""The content of an intake as JSON, in ASCII: fields of its records by name, so that any process can read it again."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.workflow.constraints import Constraints

_BY_NAME = {field.name for field in fields(Intake)} - {"elements", "received_at", "constraints"}


def intake_json(intake: Intake) -> str:
    """Returns an intake as JSON, its time as ISO 8601. A lone surrogate in a text stays what it is."""
    received_at = intake.received_at
    return json.dumps(
        {
            **{name: getattr(intake, name) for name in sorted(_BY_NAME)},
            "elements": elements_as_plain(intake.elements),
            "received_at": received_at.isoformat() if received_at else None,
            "constraints": intake.constraints.model_dump(mode="json", exclude_unset=True),
        }
    )


def intake_of(text: str) -> Intake:
    """Returns the intake that `intake_json` wrote."""
    stated: dict[str, Any] = json.loads(text)
    received_at = stated["received_at"]
    return Intake(
        **{name: stated[name] for name in _BY_NAME},
        elements=elements_of(stated["elements"]),
        received_at=datetime.fromisoformat(received_at) if received_at else None,
        constraints=Constraints.model_validate(stated["constraints"]),
    )


def elements_as_plain(elements: Sequence[Element]) -> list[dict[str, Any]]:
    """Returns elements as objects of JSON."""
    return [asdict(element) for element in elements]


def elements_of(stated: Sequence[dict[str, Any]]) -> list[Element]:
    """Returns the elements that `elements_as_plain` wrote."""
    return [Element(**{**one, "places": tuple((line, place) for line, place in one["places"])}) for one in stated]
