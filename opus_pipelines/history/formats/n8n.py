"""Reads workflows that n8n exports: a case of kind `model` whose tasks are its nodes.

A record is a node, and its position counts from 1. Notes become the description, and disabled nodes are passed through,
as in n8n; both are records that are no work. Every kind of connection is a link, so a language model or a tool precedes
the agent that uses it.
"""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import canonical
from opus_pipelines.history.formats.drawn_flows import CONNECTIONS_LOST, ModelMap
from opus_pipelines.history.formats.whole_file import not_too_deep, read_json
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.formats import log_formats
from opus_pipelines.history.records.raw import Case, Cause
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError

JSON_BYTES, NODES = 1 << 24, 100_000  # real exports have up to a few hundred nodes
_NOTE = "n8n-nodes-base.stickyNote"
# parameters that say what a node does; others hold data, addresses and keys
_KEPT = ("resource", "operation", "mode", "method")
_PROMPTS = ("text", "prompt")
_OWN = ("id", "tags")


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every workflow into `sink`. Raises InputError if the file contains none, or none with any work."""
    with not_too_deep():
        content = sink.redactor.nested(read_json(open_file, JSON_BYTES, "export the workflows one by one"))
        exports = content if isinstance(content, list) else [content]
        if not exports or not all(isinstance(e, dict) and isinstance(e.get("nodes"), list) for e in exports):
            raise InputError(_refusal(content))
        if sum(len(e["nodes"]) for e in exports) > NODES:
            raise InputError(f"it has more than {NODES:,} nodes; export the workflows one by one")
        reader = _N8nReader(settings, sink)
        for number, export in enumerate(exports, start=1):
            reader.workflow(export, f"{sink.path}#{number}" if isinstance(content, list) else sink.path)
    if not sink.case_ids and not sink.quarantined_ids:
        raise InputError(
            f"it has no node that does work (of {reader.position:,} nodes; notes and disabled nodes do none)"
        )


def _refusal(content: Any) -> str:
    known = ", ".join(f"{f.name} ({' '.join(f.suffixes)})" for f in log_formats())
    hint = ""
    if isinstance(content, dict) and "events" in content and "objects" in content:
        hint = "it looks like an OCEL 2.0 log: name it *.ocel.json; "
    return (
        f'it is no n8n export (an object with a list "nodes"), which is what *.json is read as; {hint}known '
        f"formats are {known}"
    )


class _N8nReader:
    def __init__(self, settings: SourceSettings, sink: Assembler) -> None:
        self._model = ModelMap(settings, sink.money)
        self._sink = sink
        self.position = 0

    def workflow(self, export: dict[str, Any], case_id: str) -> None:
        """Reads one workflow into the assembler, or rejects it."""
        first = self.position + 1
        nodes, notes, cause = self._nodes(export["nodes"], case_id)
        if cause is not None:
            self._quarantine(export["nodes"], first, case_id, cause)
            return
        places: dict[str, int] = {}
        for name in ("name", "id"):  # some tools and older exports connect nodes by their ids
            for place, node in enumerate(nodes):
                if node.get(name) not in (None, ""):
                    places.setdefault(str(node[name]), place)
        links, lost = [], 0
        steps = [None if node.get("disabled") is True else _step(node) for node in nodes]
        for src, dst, kind in _connections(export.get("connections")):
            if src not in places or dst not in places:
                lost += 1
                continue
            links.append((places[src], places[dst]))
            _annotate_ends(steps[places[src]], steps[places[dst]], kind)
        idle = sum(step is None for step in steps)
        self._sink.not_work(len(notes) + idle)
        if idle == len(steps):
            return
        own = {k: export[k] for k in _OWN if isinstance(export.get(k), str | list) and export[k] != []}
        description = "\n\n".join(filter(None, (_text(export.get("description")), *notes)))
        own |= {"name": _text(export.get("name")).strip(), "documentation": description} | (
            {CONNECTIONS_LOST: lost} if lost else {}
        )
        try:
            self._sink.case(self._model.case(case_id, {k: v for k, v in own.items() if v != ""}, steps, links))
        except BadValueError as error:
            raise InputError(error.reason) from None

    def _quarantine(self, nodes: list[Any], first: int, case_id: str, cause: Cause) -> None:
        """Quarantines a workflow with a node that cannot be read, with all its other nodes."""
        for position, node in enumerate(nodes, start=first):
            if _is_node(node):
                self._sink.reject_with_case(position, canonical(node), case_id, cause)
        if any(map(_is_node, nodes)):
            self._sink.case(Case(case_id, {}, []), cause)

    def _nodes(self, listed: list[Any], case_id: str) -> tuple[list[dict[str, Any]], list[str], Cause | None]:
        """Returns the nodes that are steps, the texts of the notes, and the cause of the first rejected node."""
        nodes, notes = [], []
        cause: Cause | None = None
        for node in listed:
            self.position += 1
            if not _is_node(node):
                reason = "the node is no object with a name and a type"
                rejected = self._sink.reject(self.position, "bad_node", reason, canonical(node), case_id)
                cause = cause or rejected
            elif node["type"] == _NOTE:
                notes.append(_text(_parameters(node).get("content")))
            else:
                nodes.append(node)
        return nodes, notes, cause


def _is_node(node: Any) -> bool:
    return isinstance(node, dict) and bool(_text(node.get("type"))) and bool(_text(node.get("name")))


def _step(node: dict[str, Any]) -> dict[str, Any]:
    kind, parameters = node["type"], _parameters(node)
    model = _model(parameters) if "langchain" in kind or kind.lower().endswith("openai") else None
    prompts = [p for name in _PROMPTS if (p := _text(parameters.get(name))) and "langchain" in kind]
    own = {
        "key": f"{kind} {node['name']}",
        "name": node["name"],
        "type": kind,
        "documentation": _text(node.get("notes")),
        "model": model,
        "actor_kind": "code",
        "instructions": prompts,
        "trigger": kind.endswith(("Trigger", ".webhook", ".cron", ".start")) or None,
    }
    own |= {name: value for name in _KEPT if (value := _text(parameters.get(name)))}
    if model:
        own["actor_kind"] = "model"
    return {k: v for k, v in own.items() if v}


def _annotate_ends(src: dict[str, Any] | None, dst: dict[str, Any] | None, kind: str) -> None:
    """Sets the attributes that a connection of another kind gives to its ends.

    One node is a component of the other, and the other may use its model.
    """
    if kind == "main" or src is None:
        return
    src["part"] = kind
    if kind == "ai_languageModel":
        src["actor_kind"] = "model"
        if dst is not None:
            dst["actor_kind"] = "model"
            dst.setdefault("model", src.get("model"))


def _connections(listed: Any) -> Iterator[tuple[str, str, str]]:
    """Yields every connection: the names of its ends, and its kind. Entries of another form are ignored."""
    for src, kinds in listed.items() if isinstance(listed, dict) else ():
        for kind, outputs in kinds.items() if isinstance(kinds, dict) else ():
            for output in outputs if isinstance(outputs, list) else ():
                for end in output if isinstance(output, list) else ():
                    if isinstance(end, dict):
                        yield src, _text(end.get("node")), kind


def _parameters(node: dict[str, Any]) -> dict[str, Any]:
    parameters = node.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def _model(parameters: dict[str, Any]) -> str | None:
    """Returns the name of the AI model that a node uses, or None if it is an expression."""
    stated = next((v for name in ("model", "modelId", "modelName") if (v := parameters.get(name))), None)
    name = _text(stated.get("value") if isinstance(stated, dict) else stated)
    return name if name and not name.startswith("=") else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
