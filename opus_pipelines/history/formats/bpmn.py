"""Reads BPMN 2.0 models: each process is one record and one case, of kind `model`.

An empty pool has no tasks and gives no record. Events and gateways are folded: the predecessors of a task are the tasks
from which a flow leads to it without passing another task.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import canonical
from opus_pipelines.history.formats.bpmn_flow import (
    SUB_PROCESSES,
    ProcessFlow,
    Raw,
    children,
    documentation,
    local,
    plain,
)
from opus_pipelines.history.formats.drawn_flows import ModelMap
from opus_pipelines.history.formats.whole_file import read_xml
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every process into `sink`. Raises InputError if the XML is malformed or no model."""
    root = read_xml(open_file, "definitions", "split it, a process to a file")
    processes = [] if root is None else list(children(root, "process"))
    if not processes:
        raise InputError("it is no BPMN model: the XML has no <process> in <definitions>")
    reader = _BpmnReader(root, settings, sink)
    for position, process in enumerate(processes, start=1):
        reader.process(process, position)


class _BpmnReader:
    def __init__(self, root: Any, settings: SourceSettings, sink: Assembler) -> None:
        pools = [p for c in children(root, "collaboration") for p in children(c, "participant")]
        self._pools = {p.get("processRef", "").rpartition(":")[2]: plain(p.get("name")) for p in pools}
        self._texts, self._notes = _annotations(root)
        self._free = self._free_texts(
            e for c in children(root, "collaboration") for e in c
        )  # they belong to every process
        self._model = ModelMap(settings, sink.money)
        self._sink = sink

    def process(self, process: Any, position: int) -> None:
        """Reads one process into the assembler, or rejects it."""
        ident, pool = process.get("id", ""), self._pools.get(process.get("id", ""))
        flow = ProcessFlow(process, self._notes)
        texts = [documentation(process), *self._free_texts(process.iter()), *self._free]
        tasks = {node.get("id") for node in flow.nodes if node}
        parts = (e for e in process.iter() if local(e) in SUB_PROCESSES and e.get("id") not in tasks)
        texts += [f"{plain(e.get('name'))}: {text}" for e in parts if (text := documentation(e))]
        texts += [
            text
            for e in process.iter()
            if e.get("id") not in flow.noted
            for text in self._notes.get(e.get("id", ""), ())
        ]
        own = {
            "id": ident,
            "name": plain(process.get("name")) or pool,
            "participant": pool,
            "documentation": "\n".join(filter(None, texts)),
        }
        raw = self._sink.redactor.flat({k: v for k, v in own.items() if v})
        case_id = f"{self._sink.path}#{ident or position}"
        try:
            if not any(flow.nodes):
                raise BadValueError(
                    "no_tasks", "the process has no task: it is an empty pool, or holds events and gateways only"
                )
            if self._sink.known(case_id):
                raise BadValueError("duplicate_case", f"a process {ident} was read before")
            case = self._model.case(case_id, raw, [self._step(node) for node in flow.nodes], flow.links)
        except BadValueError as error:
            self._sink.reject(position, error.code, error.reason, canonical(raw))
        else:
            self._sink.case(case)

    def _step(self, node: Raw | None) -> Raw | None:
        if node is None:
            return None
        return self._sink.redactor.flat(node | {"key": self._sink.unique_key(node.get("id", ""), node.get("name", ""))})

    def _free_texts(self, elements: Iterable[Any]) -> list[str]:
        """Returns the texts of those annotations among the elements that are attached to nothing."""
        return [
            self._texts[e.get("id", "")]
            for e in elements
            if local(e) == "textAnnotation" and e.get("id", "") in self._texts
        ]


def _annotations(root: Any) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Returns the texts that are attached to nothing, by their own id, and the others, by the id of their element."""
    texts = {e.get("id", ""): plain("".join(e.itertext())) for e in root.iter() if local(e) == "textAnnotation"}
    texts = {ident: text for ident, text in texts.items() if text}
    notes: defaultdict[str, list[str]] = defaultdict(list)
    tied = set()
    for association in (e for e in root.iter() if local(e) == "association"):
        ends = association.get("sourceRef", ""), association.get("targetRef", "")
        for note, about in (ends, ends[::-1]):
            if note in texts and about not in texts:
                notes[about].append(texts[note])
                tied.add(note)
    return {ident: text for ident, text in texts.items() if ident not in tied}, notes
