"""Reads one intake for generation: its elements, its constraints, and whether it is sufficient to work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.contract_settings import load_intake
from opus_pipelines.intakes.discover import ContractFolder
from opus_pipelines.intakes.elements import Element, contract_elements, missing, read_elements, shown_name
from opus_pipelines.workflow.constraints import Constraints, merged


@dataclass(frozen=True)
class Intake:
    """The content of one intake.

    `gain_basis` is observed where the contract or the intake states the gain, prior where the settings do, and None
    where nobody does.
    """

    intake_id: str
    folder: str
    title: str | None
    elements: Sequence[Element]
    industry: str | None = None
    client: str | None = None
    contract: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    received_at: datetime | None = None
    constraints: Constraints = field(default_factory=Constraints)
    answers: Mapping[str, str] = field(default_factory=dict)
    gain_usd: float | None = None
    gain_basis: str | None = None

    @property
    def content_hash(self) -> str:
        """The hash of the role, name and content of every document."""
        return digest([[e.role, e.name, e.sha256] for e in self.elements])

    @property
    def refusal(self) -> str | None:
        """What to ask the client for, or None where the intake can be worked on."""
        reason = missing(list(self.elements))
        unread = [
            f"{e.role}/{e.name}: {e.left_out}" for e in self.elements if e.left_out and not (e.text or "").strip()
        ]
        return f"{reason} (not read: {'; '.join(unread)})" if reason and unread else reason


def read_intake(
    contract: ContractFolder, folder: Path, settings: Settings, inherited: Sequence[Element] | None = None
) -> Intake:
    """Reads the intake in `folder`.

    `inherited`: the contract's documents where they are already read (`contract_elements`), so that many intakes share
    them. Raises SettingsError or InputError where its settings have a defect.
    """
    own = load_intake(folder)
    shared = contract.settings.documents
    stated = own.gain_usd if own.gain_usd is not None else contract.settings.gain_usd
    default = settings.reward.default_gain_usd
    return Intake(
        intake_id=contract.intake_id(folder),
        folder=shown_name(folder.name),
        title=own.title,
        elements=read_elements(
            folder,
            contract_elements(contract.documents, shared.also_read) if inherited is None else inherited,
            also_read=(own.documents or shared).also_read,
        ),
        industry=own.industry or contract.settings.industry,
        client=contract.client,
        contract=contract.contract,
        attributes={name: str(value) for name, value in own.attributes.items()},
        received_at=own.received_at,
        constraints=merged(contract.settings.constraints, own.constraints),
        answers={**contract.settings.answers, **own.answers},
        gain_usd=default if stated is None else stated,
        gain_basis="observed" if stated is not None else "prior" if default is not None else None,
    )
