"""What `opus forget` does: look, remove, publish without the client, remove what held it, search for what might be
left.
"""

import difflib
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from opus_pipelines.cli import show
from opus_pipelines.cli.write import note
from opus_pipelines.core.errors import InputError, LakeError, OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.event_logs.forgotten_clients import Forgotten, private_key
from opus_pipelines.generation.results import erasure as results
from opus_pipelines.lake.layout import Lake, read_json, slug, write_json
from opus_pipelines.lake.search import Finding, Word, search
from opus_pipelines.wkg import erasure as wkg
from opus_pipelines.wkg.erasure import take_out

_NAME = 4  # letters from which a name is looked for as a word; a shorter one only where it is a client's
_OF_OTHERS = ("history/implementations/", "decisions/", "generation/", "workflows/", "reports/", "wkg/w")


@dataclass
class ErasureWork:
    """What is to be done for one client; kept in the lake until it is done, so that a run after a kill knows it all."""

    traces: wkg.ClientTraces
    words: list[Word]
    results: int
    decisions: int = 0

    def planned(self) -> list[tuple[str, int]]:
        return [
            ("cases", len(self.traces.ids)),
            ("sources that hold them", len(self.traces.sources)),
            ("snapshots that hold them", len(self.traces.snapshots)),
            ("tasks of nobody else", len(self.traces.tasks)),
            ("results", self.results),
            ("decisions", self.decisions),
        ]


def look(lake: Lake, settings: Settings, client: str) -> ErasureWork:
    """What there is of the client, with what a run that was cut off had found; InputError where there is nothing."""
    paths = settings.paths
    own = wkg.own_sources(paths.history, client) if paths.history.is_dir() else set[str]()
    traces = wkg.find(lake, client, own)
    theirs = [result for result in results.results_of(lake) if result.client == client]
    known = wkg.clients_of(lake) | results.clients_of(lake)
    before = read_json(_journal(lake, client))
    if client not in known and before is None and not Forgotten.of(lake).holds(client) and not own:
        near = difflib.get_close_matches(client, known, n=3, cutoff=0.3) or sorted(known)[:10]
        raise InputError(
            f"{lake.root} has no client {client!r}; "
            + (f"there is: {', '.join(near)}" if near else "it has none at all")
        )
    words = [*wkg.words_of(lake, traces), *results.words_of(lake, client)]
    if before is not None:
        for name in ("ids", "tasks", "names", "sources", "own"):
            getattr(traces, name).update(before[name])
        words += [word for word in (Word(**w) for w in before["words"]) if word not in words]
    return ErasureWork(traces, words, len(theirs), len(results.decisions_of_client(lake, client)))


def carry_out(lake: Lake, settings: Settings, work: ErasureWork) -> None:
    client = work.traces.client
    with lake.lock():
        _quiet(lake)
        private_key(lake)
        write_json(
            _journal(lake, client),
            {
                "ids": sorted(work.traces.ids),
                "tasks": sorted(work.traces.tasks),
                "names": sorted(work.traces.names),
                "sources": sorted(work.traces.sources),
                "own": sorted(work.traces.own),
                "words": [asdict(word) for word in work.words],
            },
        )
        Forgotten.of(lake).with_client(client, work.traces.sources - work.traces.own).save(lake)
        removed = [
            ("decisions", len(results.decisions_of_client(lake, client))),
            ("results", results.take_out(lake, client)),
        ]
    if work.traces.snapshots:
        _publish_without(lake, settings, client)
    with lake.lock():
        _quiet(lake)
        resting = results.resting_on(lake, client, work.traces.ids, work.words)
        results.remove(lake, resting)
        others = results.remove_decisions(lake, client, work.words)
        removed += [("results of others that rested on its cases", len(resting)), *take_out(lake, work.traces)]
        removed += _take_out_of_record(lake, client, work.words)
        findings, shared = _prove(lake, client, work.words)
        if not findings:
            _journal(lake, client).unlink()
            if not any(_journal(lake, client).parent.iterdir()):
                _journal(lake, client).parent.rmdir()
    show.table(
        ("removed", "how much"), removed, f"{client} is forgotten" if not findings else f"{client} is not forgotten yet"
    )
    for name, contract in others:
        note(f"{name} / {contract}: decisions on workflows with tasks of {client} alone are removed")
    _tell(lake, settings, work, resting, shared)
    if findings:
        lines = [f"still there: {f.word.kind} {f.word.text!r} in {f.file} {f.place}".rstrip() for f in findings[:20]]
        raise LakeError("\nopus: ".join(lines))


def _publish_without(lake: Lake, settings: Settings, client: str) -> None:
    """Rebuild: a snapshot without the client becomes current. Its difference from the last one is wanted, so it blocks
    nothing.
    """
    from opus_pipelines.cli import runs

    quiet = settings.model_copy(update={"checks": settings.checks.model_copy(update={"drift": "off"})})
    complaint: OpusError | None = None
    try:
        runs.rebuild(quiet, False, False, publish=True)
    except OpusError as error:
        complaint = error
    current = lake.current_snapshot()
    if current in wkg.find(lake, client).snapshots:
        raise LakeError(
            f"the rebuild without {client} did not publish ({complaint}); mend that and run `opus forget` again: it goes on"
        )
    if complaint:
        note(f"the rebuild said: {complaint}")


def _take_out_of_record(lake: Lake, client: str, words: list[Word]) -> list[tuple[str, int]]:
    from opus_pipelines.cli import forget_record

    return forget_record.take_out(lake, client, [*_names(client), *words])


def _prove(lake: Lake, client: str, words: list[Word]) -> tuple[list[Finding], list[Finding]]:
    """Where anything of the client still stands; and where its name stands in what other clients gave."""
    found = list(search(lake, [*_names(client), *words], but=[_journal(lake, client)]))
    others = [f for f in found if f.word.kind == "client" and f.place != "its name" and f.file.startswith(_OF_OTHERS)]
    return [f for f in found if f not in others], others


def _names(client: str) -> list[Word]:
    if len(client) >= _NAME:
        return [Word("client", client)]
    return [Word("client", f"client_key={slug(client)}"), Word("client", f'"client": "{client}"')]


def _tell(
    lake: Lake, settings: Settings, work: ErasureWork, resting: list[results.Result], shared: list[Finding]
) -> None:
    client = work.traces.client
    for result in sorted({(r.client, r.contract) for r in resting}):
        note(f"{result[0]} / {result[1]}: rested on cases of {client}; `opus generate` makes it again")
    for place in sorted({f"{f.file} {f.place}" for f in shared}):
        note(f"the name {client} stands in what other clients gave: {place}")
    folders = [settings.paths.history / source for source in sorted(work.traces.sources)]
    for folder in (f for f in (*folders, *results.intakes_of(settings.paths.intakes, client)) if f.is_dir()):
        note(f"yours, and not touched: {folder} still holds {client}")


def undo(lake: Lake, client: str) -> None:
    with lake.lock():
        _quiet(lake)
        forgotten = Forgotten.of(lake)
        if not forgotten.holds(client):
            raise InputError(f"{client} is not forgotten in {lake.root}")
        forgotten.without_client(client).save(lake)
    note(f"{client} is read again from the next `opus rebuild` on")


def _journal(lake: Lake, client: str) -> Path:
    return lake.root / ".forgetting" / f"{Forgotten.of(lake).mark(client)}.json"


def _quiet(lake: Lake) -> None:
    """The lock's note of who holds it quotes the command, which names the client."""
    os.truncate(lake.root / ".lock", 0)
