"""Finds what the lake has of a client, and removes what flows, programs and language models left for it.

Finds what the lake has of a client: cases, snapshots, tasks, results, decisions, and words that only it has. The words
verify an erasure: when none of them is found afterwards, the client is erased.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    DECISIONS,
    EVALUATION_UTTERANCES,
    FLOW_DATASETS,
    FLOWS,
    IMPLEMENTATIONS,
    INTAKES,
    PROGRAM_CURVES,
    PROGRAM_RUNS,
    PROGRAM_SEARCHES,
    PROGRAM_STEPS,
)
from opus_pipelines.history.records.files import printable
from opus_pipelines.history.records.source_settings import load_source
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table, slug, unslug
from opus_pipelines.lake.results import results_of
from opus_pipelines.lake.search import Word, appears_in, search, texts_of
from opus_pipelines.wkg.upkeep.rollback import manifests_of


def clients_of_flows(lake: Lake) -> set[str]:
    """Returns the clients that have batches of flows."""
    batches = (batch for name in FLOW_DATASETS for batch in (lake.root / name).glob("client_key=*/*/*"))
    return {unslug(batch.parts[-3].partition("=")[2]) for batch in batches}


def batches_of(lake: Lake, client: str) -> set[Path]:
    """Returns the partitions of the client's batches, relative to their datasets."""
    return {
        folder.relative_to(lake.root / name)
        for name in FLOW_DATASETS
        for folder in (lake.root / name).glob(f"client_key={slug(client)}/*/*")
    }


def remove_flows(lake: Lake, client: str, words: Iterable[Word]) -> int:
    """Removes the client's batches, and the batches and evaluations in which one of the words stands; returns how many.

    A reader begins with the flows of a batch, so these go first.
    """
    names = sorted(FLOW_DATASETS, key=lambda name: name != FLOWS.name)
    chosen = list(words)
    gone = batches_of(lake, client) | _named(lake, chosen, names, 3)
    for name in names:
        for batch in sorted(gone):
            lake.remove(lake.root / name / batch)
        for place in {batch.parts[0] for batch in gone}:
            if (folder := lake.root / name / place).is_dir() and not any(folder.iterdir()):
                lake.remove(folder)
    evaluations = _named(lake, chosen, [EVALUATION_UTTERANCES.name], 1)
    for evaluation in sorted(evaluations):
        lake.remove(lake.root / EVALUATION_UTTERANCES.name / evaluation)
    return len(gone) + len(evaluations)


def _named(lake: Lake, words: list[Word], names: Iterable[str], depth: int) -> set[Path]:
    """The partitions, relative to their datasets, in a file of which one of the words stands."""
    found = set[Path]()
    for name in names:
        below = lake.root / name
        files = {lake.root / finding.file for finding in search(lake, words, below=below)} if below.is_dir() else set()
        parts = (file.relative_to(below).parts[:depth] for file in files)
        found |= {Path(*part) for part in parts if len(part) == depth}
    return found


_PROGRAMS = "programs"  # the folder of the four datasets
_FORMER = f"{_PROGRAMS}/improvements"  # a dataset of clients' workflows that an earlier version wrote and nothing reads
_TOGETHER = ((PROGRAM_RUNS, PROGRAM_STEPS), (PROGRAM_SEARCHES, PROGRAM_CURVES))  # readers begin with the first


def clients_of_runs(lake: Lake) -> set[str]:
    """Returns the clients whose tasks were run by programs."""
    return {client for _, client in _of_clients(lake) if client}


def remove_program_runs(lake: Lake, client: str, words: Iterable[Word]) -> int:
    """Removes what was made for a client, and all in which one of the words stands; returns how many."""
    lake.remove(lake.root / _FORMER)
    gone = {folder.name for folder, of in _of_clients(lake) if of == client}
    below = lake.root / _PROGRAMS
    named = {Path(finding.file) for finding in search(lake, words, below=below)} if below.is_dir() else set[Path]()
    gone |= {part for file in named for part in file.parts if part.partition("=")[0] in ("run_key", "search_key")}
    for dataset in (one for together in _TOGETHER for one in together):
        for name in gone:
            lake.remove(lake.root / dataset.name / name)
    return len(gone)


def _of_clients(lake: Lake) -> list[tuple[Path, str | None]]:
    return [
        (folder, read_table(PROGRAM_RUNS, folder, columns=["client"])["client"][0].as_py())
        for folder in sorted((lake.root / PROGRAM_RUNS.name).glob("*_key=*"))
    ]


ANSWERS = "language/answers"  # below the lake: client_key=<client>/<hash of the request>.json


def remove_answers(lake: Lake, client: str, words: Iterable[Word]) -> int:
    """Removes the kept answers of a client, and those of others in which one of the words stands; returns how many."""
    folder = lake.root / ANSWERS
    own = folder / f"client_key={slug(client)}"
    count = len(list(own.glob("*.json")))
    lake.remove(own)
    named = {finding.file for finding in search(lake, words, below=folder)} if folder.is_dir() else set[str]()
    for file in named:
        (lake.root / file).unlink()
    return count + len(named)


SAMPLE = 40  # words of each kind that are looked for afterwards
_SHORTEST, _LONGEST = 6, 200
_WORDS = {
    "case_id": "case id",
    "implementation_id": "implementation id",
    "title": "title",
    "description": "description",
}


@dataclass
class ClientTraces:
    """What the lake has of a client.

    These are its cases by id, the folders and snapshots that hold them, the tasks that nobody else carried out, and the
    names of tasks that nobody else uses.
    """

    client: str
    ids: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    folders: list[Path] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    tasks: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def clients_of(lake: Lake) -> set[str]:
    """Returns every client that the lake names.

    It may stand in history, a snapshot, a result, a pointer, a decision, the run of a program or a batch of flows.
    """
    cases = (dataset_folder(lake.snapshot_folder(snapshot), CASES) for snapshot in manifests_of(lake))
    places = [*((IMPLEMENTATIONS, folder) for folder in _history(lake)), *((CASES, folder) for folder in cases)]
    columns = (read_table(dataset, folder, columns=["client"])["client"] for dataset, folder in places)
    of_cases = {client for column in columns for client in pc.unique(column).to_pylist() if client}
    decided = {unslug(folder.name.partition("=")[2]) for folder in (lake.root / DECISIONS.name).glob("client_key=*")}
    of_results = {result.client for result in results_of(lake)} | {pointer["client"] for pointer in lake.results()}
    return of_cases | of_results | decided | clients_of_runs(lake) | clients_of_flows(lake)


def own_sources(history: Path, client: str) -> set[str]:
    """Returns the sources that say in their settings that they are this client's alone; none without the folder."""
    if not history.is_dir():
        return set()
    folders = [folder for folder in sorted(history.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]
    return {printable(Path(folder.name)) for folder in folders if _client_of(folder) == client}


def _client_of(folder: Path) -> str | None:
    try:
        return load_source(folder).constant("client")
    except SettingsError:
        return None  # a source whose settings cannot be followed is read by nobody


def find(lake: Lake, client: str, own: Iterable[str] = ()) -> ClientTraces:
    """Returns what there is of the client; `own`: sources that are its alone, whose rejected records are its too."""
    traces = ClientTraces(client, sources=set(own), own=set(own))
    for folder in _history(lake):
        table = read_table(IMPLEMENTATIONS, folder, columns=["implementation_id", "client"])
        if ids := table.filter(pc.fill_null(pc.equal(table["client"], client), False))["implementation_id"].to_pylist():
            traces.ids.update(ids)
            traces.folders.append(folder)
            traces.sources.add(unslug(folder.parent.name.removeprefix("source_key=")))
    traces.names = _task_names(lake, client)
    theirs, others = set[str](), set[str]()
    for snapshot in manifests_of(lake):
        cases = read_table(
            CASES,
            dataset_folder(lake.snapshot_folder(snapshot), CASES),
            columns=["implementation_id", "client", "tasks"],
        )
        is_theirs = pc.fill_null(pc.equal(cases["client"], client), False)
        if pc.any(is_theirs).as_py():
            traces.snapshots.append(snapshot)
            traces.ids.update(cases.filter(is_theirs)["implementation_id"].to_pylist())
        theirs |= _tasks(cases.filter(is_theirs))
        others |= _tasks(cases.filter(pc.invert(is_theirs)))
    traces.tasks = theirs - others
    return traces


def words_of(lake: Lake, traces: ClientTraces) -> list[Word]:
    """Returns words that only the cases of this client have, at most SAMPLE of each kind, and the ids of its results.

    The kinds are ids, titles, descriptions, attributes and names of tasks.
    """
    theirs, others = _rows(lake, traces, True), _rows(lake, traces, False)
    found: dict[str, set[str]] = {}
    for name, values in (pair for table in theirs for pair in texts_of(table)):
        kind = _WORDS.get(name) or (
            "task" if name.startswith("tasks.") else "attribute" if name == "attributes" else None
        )
        if kind:
            found.setdefault(kind, set()).update(v for v in values.to_pylist() if _tells(v))
    texts = [values for table in others for _, values in texts_of(table)]
    for (
        snapshot
    ) in traces.snapshots:  # words of shared tasks stand in tables without a client, and others' may be only there
        aliases = read_table(
            ALIASES, dataset_folder(lake.snapshot_folder(snapshot), ALIASES), columns=["source", "task_key", "title"]
        )
        kept = aliases.filter(pc.invert(pc.is_in(aliases["source"], pa.array(sorted(traces.sources), pa.string()))))
        texts += [values for _, values in texts_of(kept)]
    chosen: list[Word] = []
    for kind, values in sorted(found.items()):
        words = (Word(kind, text) for text in sorted(values, key=digest))
        chosen += islice((word for word in words if not appears_in(word, texts)), SAMPLE)
    return [*chosen, *_ids_of_results(lake, traces.client)]


def _ids_of_results(lake: Lake, client: str) -> Iterator[Word]:
    for result in results_of(lake, client):
        yield Word("result", result.result)
        intakes = result.read(lake, INTAKES, ["intake_id"])["intake_id"].to_pylist()
        yield from (Word("intake", intake) for intake in intakes)


def _history(lake: Lake) -> list[Path]:
    return sorted((lake.root / IMPLEMENTATIONS.name).glob("*/*"))


def _tasks(cases: pa.Table) -> set[str]:
    return set(pc.unique(pc.list_flatten(cases["tasks"])).to_pylist())


def _task_names(lake: Lake, client: str) -> set[str]:
    """The keys and titles of tasks that only this client's cases have."""
    found: dict[bool, set[str]] = {True: set(), False: set()}
    columns = ["client", "tasks.list.element.task_key", "tasks.list.element.title"]
    for file in (f for folder in _history(lake) for f in sorted(folder.glob("*.parquet"))):
        table = pq.ParquetFile(file).read(columns=columns)
        own = pc.fill_null(pc.equal(table["client"], client), False)
        for theirs, rows in ((True, table.filter(own)), (False, table.filter(pc.invert(own)))):
            found[theirs].update(name for _, values in texts_of(rows.select(["tasks"])) for name in values.to_pylist())
    return found[True] - found[False]


def _rows(lake: Lake, traces: ClientTraces, theirs: bool) -> Iterator[pa.Table]:
    """The implementations of the client, or of all others, a folder at a time."""
    for folder in _history(lake):
        table = read_table(IMPLEMENTATIONS, folder)
        own = pc.fill_null(pc.equal(table["client"], traces.client), False)
        rows = table.filter(own if theirs else pc.invert(own))
        if rows.num_rows:
            yield (
                rows.drop_columns(["client", "contract", "industry", "source", "path", "content_hash"])
                if theirs
                else rows
            )


def _tells(text: str) -> bool:
    """Is the text long enough, and no plain small number, so that finding it says something?"""
    return _SHORTEST <= len(text) <= _LONGEST and (
        any(c.isalpha() for c in text) or sum(c.isdigit() for c in text) >= 9
    )
