"""The flow of one BPMN process: its tasks as raw records, its gateways and events as nodes to be folded, its sub-processes inlined."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opus_pipelines.history.readers.bpmn_elements import (
    ACTOR_KINDS,
    FOLDED,
    SUB_PROCESSES,
    assignee_of,
    children,
    documentation,
    lanes_of,
    local,
    loop_of,
    plain,
)

Raw = dict[str, Any]


@dataclass
class _Scope:
    """What a process or a sub-process holds directly: the nodes where its parts are entered and left."""

    entry: int
    exit: int
    parts: list[tuple[int, int]] = field(default_factory=list)


class ProcessFlow:
    """Nodes and links of one process. `notes`: what text annotations say of an element, by its id; those on tasks are used here."""

    def __init__(self, process: Any, notes: Mapping[str, list[str]]) -> None:
        self.nodes: list[Raw | None] = []
        self.links: list[tuple[int, int]] = []
        self.noted: set[str] = set()
        self._notes = notes
        self._ends: dict[str, tuple[int, int]] = {}
        self._lanes = lanes_of(process)
        self._data = {e.get("id"): plain(e.get("name")) for e in process.iter() if local(e).startswith(("dataObject", "dataStore"))}
        self._scopes: list[_Scope] = []
        self._apart: set[int] = set()  # entered by no flow of their scope: boundary events, event sub-processes, compensation
        self._add_scope(process, {})
        self._link(process)

    def _node(self, raw: Raw | None = None) -> int:
        self.nodes.append(raw)
        return len(self.nodes) - 1

    def _add_scope(self, element: Any, inherited: Raw) -> tuple[int, int]:
        scope = _Scope(self._node(), 0)
        self._scopes.append(scope)
        for child in element:
            kind = local(child)
            if kind in SUB_PROCESSES and any(local(e) in ACTOR_KINDS for e in child.iter()):
                ends = self._add_scope(child, self._inherited(child, inherited))
            elif kind in ACTOR_KINDS or kind in SUB_PROCESSES:
                ends = (self._node(self._task(child, kind, inherited)),) * 2
            elif kind in FOLDED:
                ends = (self._node(),) * 2
            else:
                continue
            scope.parts.append(ends)
            if kind == "boundaryEvent" or child.get("isForCompensation") == "true" or child.get("triggeredByEvent") == "true":
                self._apart.add(ends[0])
            self._ends.setdefault(child.get("id", ""), ends)
        scope.exit = self._node()
        return scope.entry, scope.exit

    def _inherited(self, element: Any, outer: Raw) -> Raw:
        """What a sub-process says of every task in it."""
        name, ident = plain(element.get("name")), element.get("id", "")
        lane = self._lanes.get(ident)
        own = {"sub_process": " / ".join(filter(None, (outer.get("sub_process"), name))), "actor": lane, "lane": lane}
        if loop := loop_of(element):
            said = "; ".join(self._notes.get(ident, ()))
            self.noted.add(ident)
            own["loop"] = "; ".join(filter(None, (outer.get("loop"), f"{loop}: {said}" if said else loop)))
        return outer | {k: v for k, v in own.items() if v}

    def _task(self, element: Any, kind: str, inherited: Raw) -> Raw:
        ident, name = element.get("id", ""), plain(element.get("name"))
        lane = self._lanes.get(ident)
        said = [documentation(element), *self._notes.get(ident, ())]
        self.noted.add(ident)
        own = {
            "id": ident, "name": name or ident, "type": kind, "actor_kind": ACTOR_KINDS.get(kind),
            "actor": assignee_of(element) or lane, "lane": lane, "documentation": "\n".join(filter(None, said)),
            "calls": element.get("calledElement"), "loop": "; ".join(filter(None, (inherited.get("loop"), loop_of(element)))),
            "inputs": self._named(element, "dataInputAssociation", "sourceRef"),
            "outputs": self._named(element, "dataOutputAssociation", "targetRef"),
        }
        return inherited | {k: v for k, v in own.items() if v}

    def _named(self, element: Any, association: str, end: str) -> list[str]:
        refs = ((ref.text or "").strip() for a in children(element, association) for ref in children(a, end))
        return list(dict.fromkeys(name for ref in refs if (name := self._data.get(ref))))

    def _link(self, process: Any) -> None:
        """Sequence flows, boundary events, and from a scope's entry to what nothing leads to, from what leads nowhere to its exit."""
        thrown: list[tuple[str | None, int]] = []
        caught: dict[str | None, int] = {}
        for element in process.iter():
            kind = local(element)
            if kind == "sequenceFlow":
                src, dst = self._ends.get(element.get("sourceRef", "")), self._ends.get(element.get("targetRef", ""))
                self.links += [(src[1], dst[0])] if src and dst else []
            elif kind == "boundaryEvent" and (host := self._ends.get(element.get("attachedToRef", ""))):
                self.links.append((host[1], self._ends[element.get("id", "")][0]))
            elif kind == "linkEventDefinition" and (at := self._ends.get(element.getparent().get("id", ""))):
                if local(element.getparent()) == "intermediateThrowEvent":
                    thrown.append((element.get("name"), at[0]))
                else:
                    caught.setdefault(element.get("name"), at[0])
        self.links += [(src, caught[name]) for name, src in thrown if name in caught]
        entered, left = {dst for _, dst in self.links}, {src for src, _ in self.links}
        for scope in self._scopes:
            self.links += [(scope.entry, first) for first, _ in scope.parts if first not in entered and first not in self._apart]
            self.links += [(last, scope.exit) for first, last in scope.parts if last not in left and first not in self._apart]
