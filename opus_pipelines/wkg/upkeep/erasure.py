"""Erases a client from a lake (`opus forget`), and proves by a search that nothing of it is left.

The order is: note what is to be removed, remove its results and decisions, publish a snapshot without it, remove its
history and what other results took from it, and search. The note stays until the search finds nothing.
"""

import difflib
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError, LakeError, OpusError
from opus_pipelines.core.ids import digest, look_alike_form
from opus_pipelines.core.schemas import (
    DECISIONS,
    EMBEDDINGS,
    FORECAST_CASES,
    FORECAST_LIMITS,
    FORECAST_STEPS,
    IMPLEMENTATIONS,
    NEIGHBOURS,
    REJECTS,
    SOURCES,
    TASKS,
)
from opus_pipelines.history.records.forgotten_clients import Forgotten, private_key
from opus_pipelines.lake import run_storage
from opus_pipelines.lake.layout import PART, Lake, dataset_folder, read_json, read_table, slug, unslug, write_json
from opus_pipelines.lake.results import ResultKey, results_of
from opus_pipelines.lake.runs import remove_runs
from opus_pipelines.lake.search import Finding, Word, search
from opus_pipelines.language.embedding.cache import keep_vectors, tokens_of
from opus_pipelines.language.embedding.texts import case_passages
from opus_pipelines.wkg.task_matching.names import normalise
from opus_pipelines.wkg.upkeep.client_traces import (
    ClientTraces,
    batches_of,
    clients_of,
    find,
    own_sources,
    remove_answers,
    remove_flows,
    remove_program_runs,
    words_of,
)
from opus_pipelines.wkg.upkeep.retention import prune_changes, withdraw_models
from opus_pipelines.wkg.upkeep.rollback import Manifests, manifests_of, named_parts, rewrite_manifest
from opus_pipelines.wkg.upkeep.verify import SET_ASIDE

Removed = list[tuple[str, int]]  # what was removed, and how much of it
_LEAST_LETTERS = 4  # a shorter name is searched for only where the lake writes it as a client's
_OF_OTHERS = ("history/implementations/", "decisions/", "generation/", "workflows/", "reports/", "wkg/w", "flows/")
_NOTED = ("ids", "tasks", "names", "sources", "own")  # the fields of ClientTraces that outlive an interrupted run


@dataclass
class ErasureWork:
    """What is to be removed for one client.

    The lake keeps it until all is done, so that a run after a kill can finish it. `look_alikes` are other clients of
    the lake whose names a person takes for this one; they stay.
    """

    traces: ClientTraces
    words: list[Word]
    results: int
    look_alikes: tuple[str, ...]
    decisions: int = 0
    flows: int = 0

    def planned(self) -> Removed:
        """Returns what will be removed, and how much of it, as rows for a table."""
        return [
            ("cases", len(self.traces.ids)),
            ("sources that hold them", len(self.traces.sources)),
            ("snapshots that hold them", len(self.traces.snapshots)),
            ("tasks of nobody else", len(self.traces.tasks)),
            ("results", self.results),
            ("decisions", self.decisions),
            ("batches of flows", self.flows),
        ]


@dataclass
class ErasureReport:
    """What an erasure removed and found.

    `undecided` has the contracts of others that lost decisions on tasks of the client alone, `resting` the results of
    others that rested on its cases, `left` where anything of the client is left, and `shared` where documents of others
    name it. `rebuild_problem` is what the rebuild without the client reported although it published.
    """

    removed: Removed = field(default_factory=list)
    rebuild_problem: OpusError | None = None
    undecided: list[tuple[str, str]] = field(default_factory=list)
    resting: list[ResultKey] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)
    shared: list[Finding] = field(default_factory=list)


def look(lake: Lake, history: Path, client: str) -> ErasureWork:
    """Returns what the lake has of the client, with what an interrupted run had noted.

    Raises InputError where the lake has nothing of this client.
    """
    own = own_sources(history, client)
    traces = find(lake, client, own)
    known, before = clients_of(lake), read_json(_journal(lake, client))
    form = look_alike_form(client)
    twins = tuple(name for name in sorted(known) if name != client and look_alike_form(name) == form)
    if client not in known and before is None and not Forgotten.of(lake).holds(client) and not own:
        near = twins or difflib.get_close_matches(client, known, n=3, cutoff=0.3) or sorted(known)[:10]
        there = f"there is: {', '.join(near)}" if near else "it has none at all"
        raise InputError(f"{lake.root} has no client {client!r}; {there}")
    words = words_of(lake, traces)
    if before is not None:
        for name in _NOTED:
            getattr(traces, name).update(before[name])
        words += [word for word in (Word(**w) for w in before["words"]) if word not in words]
    results, decisions, flows = results_of(lake, client), _decisions(lake, client), batches_of(lake, client)
    return ErasureWork(traces, words, len(results), twins, len(decisions), len(flows))


def carry_out(
    lake: Lake, work: ErasureWork, rebuild: Callable[[], None], clean_record: Callable[[list[Word]], Removed]
) -> ErasureReport:
    """Removes the client as planned in `work`; returns what was removed and what is left.

    `rebuild` publishes a snapshot of history without the client; it is called where a snapshot has its cases.
    `clean_record` removes from the record of runs what has one of the words. Raises LakeError where the rebuild did not
    publish.
    """
    client, report = work.traces.client, ErasureReport()
    with lake.lock():
        _clear_lock_note(lake)
        private_key(lake)
        noted = {name: sorted(getattr(work.traces, name)) for name in _NOTED}
        write_json(_journal(lake, client), noted | {"words": [asdict(word) for word in work.words]})
        lake.remove(lake.root / SET_ASIDE)  # a repair may have moved files with the client there
        lake.remove(lake.staged)  # a rebuild that failed may have left its tables there
        Forgotten.of(lake).with_client(client, work.traces.sources - work.traces.own).save(lake)
        report.removed.append(("decisions", len(_decisions(lake, client))))
        report.removed.append(("batches of flows", remove_flows(lake, client, work.words)))
        report.removed.append(("results", remove_results(lake, client)))
    if work.traces.snapshots:
        report.rebuild_problem = _publish_without(lake, client, rebuild)
    with lake.lock(erase=True):
        _clear_lock_note(lake)
        lake.remove(lake.staged)  # it names the sources that were read
        report.resting = _resting_on(lake, client, work.traces.ids, work.words)
        for result in report.resting:
            result.remove(lake)
        report.undecided = remove_decisions(lake, client, work.words)
        report.removed.append(("results of others that rested on its cases", len(report.resting)))
        report.removed += remove_history(lake, work.traces)
        report.removed.append(("answers of language models", remove_answers(lake, client, work.words)))
        report.removed.append(("runs of programs", remove_program_runs(lake, client, work.words)))
        report.removed += [("rows of runs", remove_runs(lake, words := [*_names(client), *work.words]))]
        report.removed += clean_record(words)
        report.left, report.shared = _search(lake, client, work.words)
        if not report.left:
            lake.remove(_journal(lake, client))
    return report


def undo(lake: Lake, client: str) -> None:
    """Lets the client's files be read again from the next rebuild on.

    Raises InputError where the client was not forgotten.
    """
    with lake.lock():
        _clear_lock_note(lake)
        forgotten = Forgotten.of(lake)
        if not forgotten.holds(client):
            raise InputError(f"{client} is not forgotten in {lake.root}")
        forgotten.without_client(client).save(lake)


def _publish_without(lake: Lake, client: str, rebuild: Callable[[], None]) -> OpusError | None:
    failure: OpusError | None = None
    try:
        rebuild()
    except OpusError as error:
        failure = error
    current = lake.current_snapshot()
    if current in find(lake, client).snapshots:
        raise LakeError(
            f"the rebuild without {client} did not publish ({failure}); "
            "mend that and run `opus forget` again: it goes on"
        )
    return failure


def _search(lake: Lake, client: str, words: list[Word]) -> tuple[list[Finding], list[Finding]]:
    """Returns where anything of the client is left, and where documents of others name it."""
    wanted = [*_names(client), *words]
    findings = [*search(lake, wanted, but=[_journal(lake, client)]), *run_storage.findings(lake, wanted)]
    others = [
        f for f in findings if f.word.kind == "client" and f.place != "its name" and f.file.startswith(_OF_OTHERS)
    ]
    return [f for f in findings if f not in others], others


def _names(client: str) -> list[Word]:
    if len(client) >= _LEAST_LETTERS:
        return [Word("client", client)]
    return [Word("client", f"client_key={slug(client)}"), Word("client", f'"client": "{client}"')]


def _journal(lake: Lake, client: str) -> Path:
    return lake.root / ".forgetting" / f"{Forgotten.of(lake).mark(client)}.json"


def _clear_lock_note(lake: Lake) -> None:
    """Empties the lock file, which quotes the command and so names the client."""
    os.truncate(lake.root / ".lock", 0)


# --- results and decisions


def remove_results(lake: Lake, client: str) -> int:
    """Removes every pointer, result and decision of the client; returns how many results that were.

    Pointers go first: none names what is gone.
    """
    theirs = results_of(lake, client)
    for pointer in sorted((lake.root / "workflows" / "current").glob(f"{slug(client)}__*.json")):
        lake.withdraw(pointer)
    for result in theirs:
        result.remove(lake)
    key = f"client_key={slug(client)}"
    for folder in (*sorted(lake.root.glob(f"*/*/{key}")), lake.folder(DECISIONS, client_key=client)):
        lake.remove(folder)
    return len(theirs)


def remove_decisions(lake: Lake, client: str, words: list[Word]) -> list[tuple[str, str]]:
    """Removes decisions in which one of the words stands (a task that nobody else has).

    Returns the clients and contracts whose they were, without this client.
    """
    folder = lake.root / DECISIONS.name
    found = {finding.file for finding in search(lake, words, below=folder)} if folder.is_dir() else set[str]()
    theirs = set[tuple[str, str]]()
    for path in (
        path for path in sorted(folder.glob("*/*/*.parquet")) if path.relative_to(lake.root).as_posix() in found
    ):
        theirs.add((unslug(path.parts[-3].partition("=")[2]), unslug(path.parts[-2].partition("=")[2])))
        lake.withdraw(path)
    return sorted(pair for pair in theirs if pair[0] != client)


def _decisions(lake: Lake, client: str) -> list[Path]:
    return sorted(lake.folder(DECISIONS, client_key=client).glob("*/*.parquet"))


def _resting_on(lake: Lake, client: str, cases: set[str], words: list[Word]) -> list[ResultKey]:
    """Returns the results of others whose nearest cases are among `cases`, or in which one of the words stands."""
    ids = pa.array(sorted(cases), pa.string())
    others = (result for result in results_of(lake) if result.client != client)
    return [result for result in others if _has_neighbour(lake, result, ids) or _has_word(lake, result, words)]


def _has_neighbour(lake: Lake, result: ResultKey, ids: pa.Array) -> bool:
    found = result.read(lake, NEIGHBOURS, ["implementation_id"])["implementation_id"]
    return bool(pc.any(pc.is_in(found, ids)).as_py())


def _has_word(lake: Lake, result: ResultKey, words: list[Word]) -> bool:
    return any(True for folder in result.folders(lake) for _ in search(lake, words, below=folder))


# --- history and snapshots


def remove_history(lake: Lake, traces: ClientTraces) -> Removed:
    """Removes what history and the snapshots have of the client, once the current snapshot is without it."""
    for snapshot in traces.snapshots:
        lake.remove(lake.snapshot_folder(snapshot))
    _forget_drift(lake, set(traces.snapshots))
    prune_changes(lake, traces.snapshots, forget=True)
    manifests = manifests_of(lake)
    return [
        ("snapshots", len(traces.snapshots)),
        ("folders of history and aggregates", _remove_parts(lake, traces, manifests)),
        ("forecasts", remove_forecasts(lake, traces.sources)),
        ("rows of history/sources", _forget_files(lake, traces)),
        ("identities of tasks", _forget_tasks(lake, traces, traces.tasks - _known_tasks(lake, manifests))),
        ("cached vectors", _forget_vectors(lake, manifests)),
        ("models that were trained on its cases", withdraw_models(lake, traces.snapshots, manifests)),
    ]


def _forget_drift(lake: Lake, gone: set[str]) -> None:
    """Removes the drift from a snapshot with the client to one without, in the manifest and as a picture.

    The difference of the two would show what the client had.
    """
    for snapshot, manifest in manifests_of(lake).items():
        if (manifest.get("drift") or {}).get("from") in gone:
            for picture in sorted(lake.snapshot_folder(snapshot).glob("changes.*")):
                lake.withdraw(picture)
            rewrite_manifest(lake, snapshot, manifest | {"drift": None})


def _remove_parts(lake: Lake, traces: ClientTraces, manifests: Manifests) -> int:
    """Removes the history with cases of the client, older rejects, and aggregates that no snapshot uses."""
    named = named_parts(manifests.values())
    held = set(find(lake, traces.client).folders)
    gone = 0
    for source in sorted(traces.sources):
        key = f"source_key={slug(source)}"
        history = lake.root / IMPLEMENTATIONS.name / key
        gone += _remove(lake, (f for f in history.glob("*") if f in held or source in traces.own))
        gone += _remove(
            lake, (f for f in (lake.root / REJECTS.name / key).glob("*") if not (history / f.name).exists())
        )
        gone += _remove(
            lake,
            (f for f in (lake.root / "aggregates" / key).glob("*") if f.relative_to(lake.root).as_posix() not in named),
        )
    return gone


def remove_forecasts(lake: Lake, sources: Collection[str]) -> int:
    """Removes the forecasts that were learnt from the history of these sources; returns how many."""
    cases, *details = (
        [f for source in sources for f in lake.folder(dataset, source_key=source).glob("*")]
        for dataset in (FORECAST_CASES, FORECAST_STEPS, FORECAST_LIMITS)
    )
    for folders in details:
        _remove(lake, folders)
    return _remove(lake, cases)


def _remove(lake: Lake, folders: Iterable[Path]) -> int:
    there = sorted(folders)
    for folder in there:
        lake.remove(folder)
    return len(there)


def _forget_files(lake: Lake, traces: ClientTraces) -> int:
    """The rows of files that are read no more."""
    table = read_table(SOURCES, lake.folder(SOURCES))
    theirs = pc.is_in(table["source"], pa.array(sorted(traces.sources), pa.string()))
    gone = pc.and_(theirs, pc.fill_null(pc.equal(table["status"], "gone"), False))
    if count := pc.sum(gone).as_py():
        kept = table.filter(pc.invert(gone))
        _replace(lake, lake.folder(SOURCES) / PART, kept, copy=False)
    return count or 0


def _known_tasks(lake: Lake, manifests: Iterable[str]) -> set[str]:
    folders = (dataset_folder(lake.snapshot_folder(snapshot), TASKS) for snapshot in manifests)
    return {
        task for folder in folders for task in read_table(TASKS, folder, columns=["task_id"])["task_id"].to_pylist()
    }


def _forget_tasks(lake: Lake, traces: ClientTraces, tasks: set[str]) -> int:
    """Removes from the id ledger the names that only this client used, and their tasks.

    Entries in use belong to others too and stay.
    """
    file = lake.kept / "ids.parquet"
    if not file.exists():
        return 0
    table = pq.ParquetFile(file).read()
    names = {normalise(name) for name in traces.names}
    rows = table.select([name for name in ("identity", "task_id", "in_use") if name in table.schema.names]).to_pylist()
    gone = [
        row["task_id"] in tasks or (not row.get("in_use") and _is_named(row["identity"], traces, names)) for row in rows
    ]
    if any(gone):
        _replace(lake, file, table.filter(pa.array([not is_gone for is_gone in gone], pa.bool_())))
    return sum(gone)


def _is_named(identity: str, traces: ClientTraces, names: set[str]) -> bool:
    source, _, key = identity.partition("//")
    return identity in names or source in traces.own or (source in traces.sources and key in traces.names)


def _forget_vectors(lake: Lake, manifests: Manifests) -> int:
    """Keeps of the embedding cache only the texts of the remaining snapshots.

    The texts of intakes are encoded again when they are needed.
    """
    models = sorted(f for f in (lake.kept / "embeddings").glob("*") if f.is_dir())
    return sum(keep_vectors(model, _texts_in_use(lake, manifests, tokens_of(model))) for model in models)


def _texts_in_use(lake: Lake, manifests: Manifests, max_tokens: int) -> set[str]:
    used: set[str] = set()
    for snapshot, manifest in manifests.items():
        folder = dataset_folder(lake.snapshot_folder(snapshot), EMBEDDINGS)
        used.update(read_table(EMBEDDINGS, folder, columns=["content_hash"])["content_hash"].to_pylist())
        sources = [lake.root / source["folder"] for source in manifest["inputs"]["sources"]]
        used.update(digest(text) for text in case_passages(sources, max_tokens))
    return used


def _replace(lake: Lake, file: Path, table: pa.Table, copy: bool = True) -> None:
    lake.replace(file, lambda path: pq.write_table(table, path, compression="zstd"), copy)
