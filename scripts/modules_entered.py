#!/usr/bin/env python3
"""Counts the modules of opus_pipelines that one piece of work enters: what a reader opens to follow it.

    scripts/modules_entered.py intake     one intake of the sample: documents read, and the five stages
    scripts/modules_entered.py log        one CSV log: from the file to the published snapshot
    scripts/modules_entered.py utterance  one utterance: to its flow as BPMN

Prints one line of JSON: `modules` and `functions` that were called, and the `lines` of these functions. `--list` also
prints the modules, with the number of functions called in each, to stderr.

A module counts when a function of it is called while the work runs. The work runs once before, in the same process, so
that imports and what a worker process loads once do not count.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PACKAGE = f"{ROOT / 'opus_pipelines'}{os.sep}"
CLOCK = datetime(2026, 3, 1, tzinfo=UTC)
UTTERANCE = "Retrieve all open claims. For each claim, check the cover. If the amount is above 500, send it for review."
ACTIVITIES = {
    "list_open_claims": "Retrieve all open claims",
    "check_cover": "Check the cover of a claim",
    "send_for_review": "Send a claim for review",
}


class Calls:
    """The code objects of this package that were called, in this process and in its forked children."""

    def __init__(self, file: Path) -> None:
        self._file = file  # what a forked child calls would be lost with it
        self._seen: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        self._seen.add(code)
        if code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            last = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
            entry = [code.co_filename.removeprefix(PACKAGE), code.co_firstlineno, last]
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    def of(self, work: Callable[[], object]) -> list[tuple[str, int, int]]:
        """Runs the work; the functions that it called, as file, first and last line."""
        self._file.write_text("")
        self._seen.clear()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        rows = (json.loads(line) for line in self._file.read_text("utf-8").splitlines())
        return sorted({(file, first, last) for file, first, last in rows})


def rebuilt(history: Path, lake: Path) -> Any:
    """The settings of a lake, and its snapshot, made of a folder of history by the steps of the night."""
    from opus_pipelines.core.settings import Settings
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.language.embedding.cache import CachedEncoder
    from opus_pipelines.language.embedding.encoder import encoder_of
    from opus_pipelines.wkg.rebuild import steps

    settings = Settings.model_validate({"paths": {"history": history, "lake": lake}})
    home, none = Lake(lake), lambda *_: None
    encoder = lambda of: CachedEncoder(encoder_of(settings.encoder), of.kept / "embeddings")
    engines = steps.Engines(none, none)  # type: ignore[arg-type]
    with home.lock():
        steps.read(settings, home, CLOCK)
        rebuild = steps.begun(settings, home, encoder)
        steps.mine(rebuild, engines)
        steps.check_mined(rebuild)
        steps.embed(rebuild, encoder)
        steps.check_embedded(rebuild)
        return settings, steps.publish(rebuild, CLOCK)


def sample_with(folder: Path, source: str) -> Any:
    """The sample, and beside it a folder of history with one of its sources."""
    from opus_pipelines.quality.sample import write_sample

    sample = write_sample(folder / "sample")
    shutil.copytree(sample.history / source, folder / "history" / source)
    return sample


def one_log(folder: Path) -> Callable[[], object]:
    """A CSV log of the sample to a published snapshot; a new lake at each call."""
    sample_with(folder, "brightwater_invoices")
    lakes = iter(range(10))
    return lambda: rebuilt(folder / "history", folder / f"lake{next(lakes)}")


def one_intake(folder: Path) -> Callable[[], object]:
    """An intake of the sample: its documents, and the five stages, in a worker process that has the snapshot open."""
    from opus_pipelines.generation.bulk.chunks import GenerationSetup, WorkerState
    from opus_pipelines.generation.flow import generate
    from opus_pipelines.generation.records import ContractTerms, GenerationContext
    from opus_pipelines.intakes.contract_settings import prices
    from opus_pipelines.intakes.intake import discover, read_intake
    from opus_pipelines.intakes.stored import Inherited
    from opus_pipelines.language.embedding.encoder import encoder_of

    sample = sample_with(folder, "brightwater_expenses")  # the history of the first contract's industry
    settings, snapshot = rebuilt(folder / "history", folder / "lake")
    contract = next(c for c in discover(sample.intakes_folder) if c.intakes)
    chosen, encoder = contract.settings, encoder_of(settings.encoder)
    state = WorkerState(GenerationSetup(settings.paths.lake, snapshot, settings))
    state.load(chosen.industry)
    terms = ContractTerms(prices(settings, chosen, contract.folder), chosen.review, contract.decisions, chosen.calendar)

    def work() -> None:
        intake = read_intake(contract, contract.intakes[0], settings, Inherited.of(contract).elements)
        (outcome,) = generate(intake, GenerationContext(state.index, encoder, state.model, settings, terms))
        assert outcome.ranked

    return work


def one_utterance(folder: Path) -> Callable[[], object]:
    """An utterance to BPMN, by the writer that needs no model."""
    from opus_pipelines.core.settings import Settings
    from opus_pipelines.flows.from_text.activities import read_catalogue
    from opus_pipelines.flows.from_text.generator import learn
    from opus_pipelines.flows.from_text.predictions import made_by_ranker
    from opus_pipelines.language.embedding.encoder import encoder_of
    from opus_pipelines.workflow.blocks.formats.registry import written

    path = folder / "activities.json"
    path.write_text(json.dumps([{"id": name, "description": text} for name, text in ACTIVITIES.items()]))
    writer = learn(read_catalogue(path), (), encoder_of(Settings().encoder))
    return lambda: written(made_by_ranker(writer, UTTERANCE, None).flow, "bpmn")


WORK: dict[str, Callable[[Path], Callable[[], object]]] = {
    "intake": one_intake,
    "log": one_log,
    "utterance": one_utterance,
}


def measured(what: str) -> tuple[dict[str, int], Counter[str]]:
    """The figures of one piece of work, and the functions called by module."""
    with tempfile.TemporaryDirectory() as folder:
        work = WORK[what](Path(folder))
        work()
        called = Calls(Path(folder) / "calls.jsonl").of(work)
    lines = {(file, line) for file, first, last in called for line in range(first, last + 1)}
    modules = Counter(file for file, *_ in called)
    return {"modules": len(modules), "functions": len(called), "lines": len(lines)}, modules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted(WORK))
    parser.add_argument("--list", action="store_true", help="print the modules to stderr")
    arguments = parser.parse_args()
    figures, modules = measured(arguments.what)
    if arguments.list:
        for module, functions in sorted(modules.items()):
            print(f"{functions:5} {module}", file=sys.stderr)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
