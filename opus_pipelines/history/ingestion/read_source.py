"""Reads all files of one source: each independently, then again those whose result depends on other files.

Files of a source share three things: cases that stand in several of them (or in several places of one), whether the log
has a start or a complete anywhere, and what a date like 03/04/2020 means. A log therefore gives the same cases whether
it comes as one file or as many. Cases that stand in several places are joined, and every record is counted. Their parts
stay in memory while they are few, and are otherwise written to disk in buckets of whole cases.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS
from opus_pipelines.history.ingestion.parallel_files import FileReadPool
from opus_pipelines.history.ingestion.plan import FilePlan, SourcePlan
from opus_pipelines.history.ingestion.read_file import FileResult, RejectRows, SmallSpools, Spool, client_of, log_file
from opus_pipelines.history.records.assembler import (
    Assembler,
    OtherFiles,
    Outlets,
    is_idle,
    quarantined_event,
)
from opus_pipelines.history.records.duplicate_events import CaseBuckets, CasePart, JoinedCase, join
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.records.formats import FORMATS, LOG_FORMATS, Format
from opus_pipelines.history.records.raw import Counts, Reject
from opus_pipelines.history.records.source_settings import SourceSettings

_IN_MEMORY = 100_000  # events, of about 3 KB each


class CaseParts:
    """Stores the parts of cases in the order of the files. Many parts are stored in `folder`."""

    def __init__(self, folder: Path, in_memory: int = _IN_MEMORY) -> None:
        self._limit = in_memory
        self._kept: list[CasePart] = []
        self._events = 0
        self._buckets = CaseBuckets[CasePart](folder)

    def add(self, parts: Sequence[CasePart]) -> None:
        """Adds the parts of the next file."""
        self._kept += parts
        self._events += sum(len(part.case.events) for part in parts)
        if self._events > self._limit:
            self._spill()

    def cases(self) -> Iterator[list[CasePart]]:
        """Yields the parts of every case. The cases of a bucket have the order in which they were added."""
        if not self._buckets:
            yield from _by_case(self._kept)
            return
        self._spill()
        for bucket in self._buckets.buckets():
            yield from _by_case(bucket)

    def close(self) -> None:
        """Deletes all parts."""
        self._buckets.close()
        self._kept = []

    def _spill(self) -> None:
        self._buckets.add((part.case.case_id, part) for part in self._kept)
        self._kept, self._events = [], 0


def _by_case(parts: Sequence[CasePart]) -> Iterator[list[CasePart]]:
    cases: defaultdict[str, list[CasePart]] = defaultdict(list)
    for part in parts:
        cases[part.case.case_id].append(part)
    yield from cases.values()


class CasePartJoiner:
    """Joins the parts of cases and hands the cases to the assembler.

    `counts` has the counts of each file by its path; the joiner adds what became of the cases' records.
    """

    def __init__(
        self,
        sink: Assembler,
        settings: SourceSettings,
        counts: Mapping[str, Counts],
        record_is_case: bool,
        hand_on_reject: Callable[[str, Reject], None],
    ) -> None:
        self._sink, self._counts, self._record_is_case, self._hand_on_reject = (
            sink,
            counts,
            record_is_case,
            hand_on_reject,
        )
        self._keep = settings.events.repeated == "keep"

    def case(self, parts: list[CasePart]) -> None:
        """Joins and finishes one case."""
        if self._record_is_case:
            self._last_record(parts)
            return
        values = [part for part in parts if part.is_values]
        parts = [part for part in parts if not part.is_values]
        for part in values:
            is_used = bool(parts) and part is values[-1]
            self._counts[part.path].used += is_used
            self._counts[part.path].not_work += not is_used
            if part is not values[-1]:
                self._counts[part.path].duplicates += part.case.fields == values[-1].case.fields
                self._counts[part.path].corrected += part.case.fields != values[-1].case.fields
        if not parts:
            return
        parts[0].case.fields.update(values[-1].case.fields if values else {})
        cause = next((part.cause for part in parts if part.cause is not None), None)
        clients = {(event.fields or {}).get("client") for part in parts for event in part.case.events}
        if any(self._sink.is_left_out_case(part.case) for part in parts) or any(map(self._sink.is_left_out, clients)):
            for part in parts:
                self._counts[part.path].not_work += len(part.case.events)
        elif cause is not None:
            self._counts[cause.path].quarantined += 1
            for part in parts:
                self._counts[part.path].rejected += len(part.case.events)
                for event in part.case.events:
                    self._hand_on_reject(
                        part.path, quarantined_event(part.case.case_id, event, cause, self._sink.redactor)
                    )
        else:
            self._finish(join(parts, self._keep), parts[0].path)

    def _finish(self, joined: JoinedCase, first: str) -> None:
        for path in joined.duplicates:
            self._counts[path].duplicates += 1
            self._counts[path].not_work += 1
        for path in joined.corrected:
            self._counts[path].corrected += 1
            self._counts[path].not_work += 1
        for path, event in zip(joined.paths, joined.case.events, strict=True):
            idle = is_idle(event, self._sink.log_has_work)
            self._counts[path].not_work += idle
            self._counts[path].used += not idle
        first = joined.paths[0] if joined.paths else first
        tasks, _ = self._sink.add(joined.case, first)
        self._counts[first].implementations += 1
        self._counts[first].task_implementations += len(tasks)

    def _last_record(self, parts: list[CasePart]) -> None:
        """Finishes a case of a format whose record is a whole case: the last record counts.

        Earlier records are duplicates if they equal the last one, else they are corrected.
        """
        last = parts[-1]
        tasks = [event.task for event in last.case.events]
        left_out = self._sink.is_left_out_case(last.case)
        for part in parts[:-1]:
            counts = self._counts[part.path]
            counts.not_work += 1
            if part.case.fields == last.case.fields and [event.task for event in part.case.events] == tasks:
                counts.duplicates += 1
            else:
                counts.corrected += 1
        counts = self._counts[last.path]
        if left_out:
            counts.not_work += 1
            return
        counts.used += 1
        counts.implementations += 1
        done, _ = self._sink.add(last.case, last.path)
        counts.task_implementations += len(done)


ONE_FILE_EACH = frozenset({"ocel"})  # formats whose cases are not joined, because an event may belong to several cases


@dataclass
class SourceResult:
    """The result of a source: the results of its files, the joined cases, and the forgotten clients that occurred.

    `joined_cases` is the number of the joined cases.
    """

    files: list[FileResult]
    joined: list[FileResult]
    left_out: set[str]
    joined_cases: int = 0

    @property
    def implementations(self) -> int:
        """The number of cases of all files."""
        return sum(file.counts.implementations for file in self.files)

    def spools(self) -> tuple[list[Spool], list[Spool]]:
        """Returns the rows of implementations and of rejects."""
        results = [*self.files, *self.joined]
        implementations = [r.implementations for r in results if r.implementations is not None]
        return implementations, [r.rejects for r in results if r.rejects is not None]

    def drop(self) -> None:
        """Deletes the rows."""
        for result in (*self.files, *self.joined):
            result.drop()


def read_source(plan: SourcePlan, forgotten: Forgotten, reading: FileReadPool) -> SourceResult:
    """Reads every file of a source whose settings are valid."""
    other_files = OtherFiles(forgotten=forgotten)
    small = (SmallSpools(IMPLEMENTATIONS.schema), SmallSpools(REJECTS.schema))
    results = [_together(reading.read(plan, file, other_files), small) for file in plan.files]
    settings = plan.settings or SourceSettings()
    clients = [client_of(file, settings) for file in plan.files]
    held = {client: _held(plan.files, results, client, clients) for client in dict.fromkeys(clients)}
    has_work = any(result.has_work for result in results)
    day_first = _agreed(results)
    parts = {client: CaseParts(reading.folder / f"parts-{number}") for number, client in enumerate(held)}
    again = [
        _must_be_read_again(result, held[client], has_work, day_first)
        for result, client in zip(results, clients, strict=True)
    ]
    others: set[str] = set()
    for place, (file, is_needed) in enumerate(zip(plan.files, again, strict=True)):
        first_names = results[place]
        if is_needed or (file.format in ONE_FILE_EACH and not others.isdisjoint(first_names.case_ids)):
            first_names.drop()
            known = others if file.format in ONE_FILE_EACH else set()
            aware = OtherFiles(
                known,
                held[clients[place]] if file.format not in ONE_FILE_EACH else frozenset(),
                has_work,
                day_first,
                other_files.names,
                forgotten,
            )
            results[place] = _together(reading.again(plan, file, aware), small)
            other_files.left_out |= aware.left_out
            parts[clients[place]].add(results[place].parts)
            results[place].parts = []
        others |= first_names.case_ids
    for spools in small:
        spools.flush()
    others_of_all = OtherFiles(forgotten=forgotten, has_work=has_work, left_out=other_files.left_out)
    joined = [_join(plan, results, some, others_of_all, reading) for some in parts.values()]
    return SourceResult(results, joined, other_files.left_out, sum(map(len, held.values())))


def _together(result: FileResult, small: tuple[SmallSpools, SmallSpools]) -> FileResult:
    """Returns the result, whose rows may from now on share a batch with those of other small files."""
    for spools, spool in zip(small, (result.implementations, result.rejects), strict=True):
        spools.add(spool)
    return result


def _held(
    files: Sequence[FilePlan], results: Sequence[FileResult], client: str, clients: Sequence[str]
) -> frozenset[str]:
    """Returns the cases that stand in several places, among the files that belong to one of the `clients`."""
    places: Counter[str] = Counter()
    repeated: set[str] = set()
    for file, result, own in zip(files, results, clients, strict=True):
        if file.format not in ONE_FILE_EACH and own == client:
            places.update(result.case_ids | result.quarantined_ids)
            repeated |= result.repeated
    return frozenset({case_id for case_id, count in places.items() if count > 1} | repeated)


def _agreed(results: Sequence[FileResult]) -> bool | None:
    shown = {result.day_first for result in results if result.day_first is not None}
    return shown.pop() if len(shown) == 1 else None


def _must_be_read_again(result: FileResult, held: frozenset[str], has_work: bool, day_first: bool | None) -> bool:
    if result.reason is not None:
        return False
    shares = not (held.isdisjoint(result.case_ids) and held.isdisjoint(result.quarantined_ids))
    is_told_work = has_work and result.waited_for_work
    is_told_dates = day_first is not None and result.asks_day_first and result.day_first is None
    return shares or is_told_work or is_told_dates


def _join(
    plan: SourcePlan, results: Sequence[FileResult], parts: CaseParts, other_files: OtherFiles, reading: FileReadPool
) -> FileResult:
    """Returns the rows of the joined cases, and counts their records at their files."""
    settings = plan.settings or SourceSettings()
    by_path = {file.path: result for file, result in zip(plan.files, results, strict=True)}
    kinds = {file.path: _kind(file) for file in plan.files}
    by_plan = {file.path: file for file in plan.files}
    name = uuid.uuid4().hex
    implementations = Spool(reading.folder / f"{name}.implementations", IMPLEMENTATIONS.schema)
    rejects = RejectRows(plan.name, Spool(reading.folder / f"{name}.rejects", REJECTS.schema))
    sinks: dict[str, Assembler] = {}
    joiners: dict[str, CasePartJoiner] = {}
    try:
        for case in parts.cases():
            kind = kinds[case[-1].path]
            if kind.name not in joiners:
                outlets = Outlets(implementations.add, lambda reject: None)
                sink = Assembler(
                    log_file(plan.name, by_plan[case[0].path], kind, settings), settings, other_files, outlets
                )
                counts = {path: result.counts for path, result in by_path.items()}
                sinks[kind.name] = sink
                joiners[kind.name] = CasePartJoiner(
                    sink,
                    settings,
                    counts,
                    kind.record_is_case,
                    lambda path, reject: rejects.add(path, kinds[path], reject),
                )
            joiners[kind.name].case(case)
        for sink in sinks.values():
            sink.finish()
        rejects.flush()
    finally:
        parts.close()
    return FileResult(implementations=implementations.finish(), rejects=rejects.spool.finish())


def _kind(file: FilePlan) -> Format:
    return LOG_FORMATS.get(file.format or FORMATS[0].name)
