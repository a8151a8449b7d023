"""A contract with utterances, a catalogue and examples, written into a lake without a model."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from opus_pipelines.core.settings import Settings
from opus_pipelines.flows.batches.batch import FlowBatch, contract_batch
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake
from tests.flows.from_text.flow_examples import ENTRIES, WordEncoder

JIRA, SLACK = "Jira_Issue__2_0_0__create_Issue", "Slack_message__3_0_0__create_message"
CREATE = ("new", "Create an issue in Jira", "", f"issue = {JIRA}()")
ADD = ("add", "Send a slack message", f"issue = {JIRA}()", f"issue = {JIRA}()\nmessage = {SLACK}()")


def write_contract(intakes: Path, rows: Sequence[Sequence[str]], client: str = "Acme") -> Path:
    """Writes a contract with these utterances (uid, utterance, prior, gold), and returns its folder of flows."""
    folder = intakes / client / "Automation" / "flows"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "asked.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("uid", "utterance", "prior", "gold"), *rows])
    entries = [{"id": name, "description": text} for name, text in ENTRIES]
    (folder / "catalogue.json").write_text(json.dumps(entries))
    return folder


def written(lake: Lake, intakes: Path, settings: Settings | None = None) -> list[FlowBatch | None]:
    """Writes the batch of each contract."""
    with lake.lock():
        contracts, given = discover(intakes), settings or Settings()
        return [contract_batch(lake, one, WordEncoder(), given, lambda done, of: None) for one in contracts]
