"""Joins cases that stand in several files of a source, or in several places of one file, and counts every record.

The parts stay in memory while they are few. Otherwise they are written to disk in buckets of whole cases, so that
memory stays constant however many files a source has.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from opus_pipelines.history.records.assembler import Assembler, quarantined_event
from opus_pipelines.history.records.case_buckets import CaseBuckets
from opus_pipelines.history.records.duplicate_events import CasePart, JoinedCase, join
from opus_pipelines.history.records.lifecycles import NOT_WORK
from opus_pipelines.history.records.records import Counts, Reject
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
        self._keep = settings.duplicates == "keep"

    def case(self, parts: list[CasePart]) -> None:
        """Joins and finishes one case."""
        if self._record_is_case:
            self._last_record(parts)
            return
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
            idle = self._sink.log_has_work and event.transition in NOT_WORK
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
