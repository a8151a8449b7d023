"""An accepting Petri net, and the net of a BPMN file by the standard mapping (Dijkman, Dumas, Ouyang 2008).

A sequence flow is a place, a task is a transition with a label, a gateway or an event is a silent transition. The net
starts with one token in its source, and has ended when tokens lie in its sink alone.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.bpmn_xml import children, local, parsed

Marking = tuple[int, ...]  # the place of each token, in ascending order

SOURCE, SINK = 0, 1
_SUB_PROCESSES = frozenset(("subProcess", "transaction"))
_EVENTS = frozenset(("startEvent", "endEvent", "intermediateThrowEvent", "intermediateCatchEvent"))
_XOR = frozenset(("exclusiveGateway", "eventBasedGateway"))
_NODES = _SUB_PROCESSES | _EVENTS | _XOR | {"parallelGateway"}
_UNKNOWN = frozenset(("inclusiveGateway", "complexGateway", "adHocSubProcess"))
_LOOPS = ("standardLoopCharacteristics", "multiInstanceLoopCharacteristics")


@dataclass
class Net:
    """Transitions by number: the label (None where it is silent), and the places that it takes from and gives to."""

    labels: list[str | None] = field(default_factory=list)
    takes: list[Marking] = field(default_factory=list)
    gives: list[Marking] = field(default_factory=list)
    places: int = 2

    def place(self) -> int:
        """Adds a place."""
        self.places += 1
        return self.places - 1

    def add(self, label: str | None, takes: Iterable[int], gives: Iterable[int]) -> None:
        """Adds a transition."""
        self.labels.append(label)
        self.takes.append(tuple(takes))
        self.gives.append(tuple(gives))

    @cached_property
    def _by_place(self) -> dict[int, list[int]]:
        """The transitions that take from each place first. Every transition takes from one place or more."""
        by_place = defaultdict(list)
        for transition, takes in enumerate(self.takes):
            by_place[takes[0]].append(transition)
        return by_place

    def enabled(self, marking: Marking) -> list[int]:
        """Returns the transitions that may fire, in ascending order."""
        may = [t for place in dict.fromkeys(marking) for t in self._by_place.get(place, ())]
        return sorted(t for t in may if all(marking.count(p) >= self.takes[t].count(p) for p in self.takes[t]))

    def fire(self, transition: int, marking: Marking) -> Marking:
        """Returns the marking after a transition that is enabled."""
        left = list(marking)
        for place in self.takes[transition]:
            left.remove(place)
        return tuple(sorted((*left, *self.gives[transition])))


START: Marking = (SOURCE,)


def has_ended(marking: Marking) -> bool:
    """Whether tokens lie in the sink alone."""
    return bool(marking) and marking[0] == marking[-1] == SINK


def net_of_bpmn(content: bytes, name: str) -> Net:
    """Returns the net of the processes of a BPMN file; several processes run beside each other.

    A task with a loop marker may be repeated, one for each item also left out. What interrupts a step happens before
    it or, for a sub-process, also after it. Raises InputError that names the file where it is broken, where it has no
    task, or where an element has no such meaning (an inclusive gateway).
    """
    try:
        root = parsed(content)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    processes = [p for p in children(root, "process") if any(local(e).casefold().endswith("task") for e in p.iter())]
    if not processes:
        raise InputError(f"{name}: it has no <process> with a task, so no case can be compared with it")
    writer = _NetOfBpmn(name)
    entries, exits = zip(*(writer.scope(process) for process in processes), strict=True)
    writer.net.add(None, (SOURCE,), entries)
    writer.net.add(None, exits, (SINK,))
    return without_series(writer.net)


def without_series(net: Net) -> Net:
    """Returns the net without the silent transitions that have only one neighbour to come after or before.

    Where a place has one transition that gives to it and one that takes from it, a silent one of the two that has no
    other such place is merged into its neighbour (fusion of series transitions, Murata 1989): the runs stay the same.
    """
    takes, gives = list(net.takes), list(net.gives)
    takers, givers = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for transition in range(len(net.labels)):
        for place in takes[transition]:
            takers[place].append(transition)
        for place in gives[transition]:
            givers[place].append(transition)
    kept = dict.fromkeys(range(len(net.labels)))
    sides = (takes, gives, takers, givers), (gives, takes, givers, takers)
    before = 0
    while before != len(kept):
        before = len(kept)
        for transition in [t for t in kept if net.labels[t] is None]:
            for near, far, own, other in sides:
                place = near[transition][0]
                if len(near[transition]) > 1 or len(own[place]) != 1 or len(other[place]) != 1:
                    continue
                (into,) = other[place]
                if into == transition:
                    continue
                far[into] = (*(p for p in far[into] if p != place), *far[transition])
                for moved in far[transition]:
                    other[moved].remove(transition)
                    other[moved].append(into)
                del kept[transition]
                break
    smaller = Net(places=net.places)
    for t in kept:
        smaller.add(net.labels[t], takes[t], gives[t])
    return smaller


class _NetOfBpmn:
    def __init__(self, name: str) -> None:
        self.net, self._name = Net(), name

    def scope(self, owner: Any) -> tuple[int, int]:
        """Adds a process or a sub-process, and returns the places by which it is entered and left.

        It is left once all of its tokens have come to an end: as many ends as run at the same time are taken together.
        """
        net = self.net
        nodes = {e.get("id", ""): e for e in owner if self._is_node(e)}
        flows = [(f.get("sourceRef", ""), f.get("targetRef", "")) for f in children(owner, "sequenceFlow")]
        incoming, outgoing = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        for source, target in flows:
            if source not in nodes or target not in nodes:
                lost = source if source not in nodes else target
                raise InputError(f"{self._name}: a sequence flow names {lost!r}, which is not in its process")
            place = net.place()
            outgoing[source].append(place)
            incoming[target].append(place)
        entry, done, exit_place = net.place(), net.place(), net.place()
        attached = {i: e for i, e in nodes.items() if local(e) == "boundaryEvent"}
        own = {i: e for i, e in nodes.items() if i not in attached and e.get("triggeredByEvent") != "true"}
        first = [i for i in own if not incoming[i]]
        if not first:
            raise InputError(f"{self._name}: {owner.get('id')} has no element to begin with; give it a start event")
        begins = {i: net.place() for i in first}
        starts = [begins[i] for i in first if local(own[i]) == "startEvent"]
        for place in starts:  # several start events are alternatives
            net.add(None, (entry,), (place, *(p for p in begins.values() if p not in starts)))
        if not starts:
            net.add(None, (entry,), begins.values())
        for ident, element in own.items():
            after = outgoing[ident] or [done]
            self._node(element, incoming[ident] or [begins[ident]], after, attached, outgoing)
        net.add(None, (done,), (exit_place,))
        if len([i for i in own if not outgoing[i]]) > 1:
            net.add(None, (done, done), (done,))  # ends of parallel branches
        return entry, exit_place

    def _is_node(self, element: Any) -> bool:
        kind = local(element)
        if kind in _UNKNOWN:
            raise InputError(
                f"{self._name}: {kind} {element.get('id')} is not read; draw it with parallel and exclusive gateways"
            )
        return kind in _NODES or kind == "boundaryEvent" or _is_task(element)

    def _node(
        self,
        element: Any,
        before: list[int],
        after: list[int],
        attached: dict[str, Any],
        outgoing: dict[str, list[int]],
    ) -> None:
        net, kind = self.net, local(element)
        if kind == "parallelGateway":
            net.add(None, before, after)
            return
        if len(before) == 1:
            entered = before[0]
        else:
            entered = net.place()
            for place in before:
                net.add(None, (place,), (entered,))
        if kind in _XOR:
            if len(before) > 1 < len(after):  # a join and a split in one
                joined, entered = entered, net.place()
                net.add(None, (joined,), (entered,))
            for place in after:
                net.add(None, (entered,), (place,))
            return
        interrupting = []
        for ident, event in attached.items():
            if event.get("attachedToRef") != element.get("id") or not outgoing[ident]:
                continue
            if event.get("cancelActivity") == "false":
                begun = net.place()  # the branch of the event may begin once
                net.add(None, (entered,), (begun,))
                net.add(None, (entered,), (begun, *outgoing[ident]))
                entered = begun
            else:
                interrupting.append(outgoing[ident])
        if kind in _SUB_PROCESSES and any(_is_task(e) for e in element.iter()):
            first, left = self.scope(element)
            net.add(None, (entered,), (first,))
            net.add(None, (left,), after)
        else:
            left = net.place() if any(True for _ in children(element, *_LOOPS)) else -1
            label = None if kind in _EVENTS else " ".join((element.get("name") or element.get("id", "")).split())
            net.add(label, (entered,), after if left < 0 else (left,))
            if left >= 0:
                net.add(None, (left,), after)
        for loop in children(element, *_LOOPS):
            net.add(None, (left,), (entered,))
            if local(loop) == _LOOPS[1] or loop.get("testBefore") == "true":
                net.add(None, (entered,), (left,))
        for branch in interrupting:
            net.add(None, (entered,), branch)
            if kind in _SUB_PROCESSES and left >= 0:
                net.add(None, (left,), branch)


def _is_task(element: Any) -> bool:
    kind = local(element)
    return kind.casefold().endswith("task") or kind == "callActivity"
