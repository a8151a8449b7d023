"""Workflows put side by side and one after the other, EVAL A5. Ids that clash are renamed; the parts stay as
they are.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.model import InputNode, OutputNode, Workflow


def parallel(first: Workflow, second: Workflow) -> Workflow:
    """W₁ ∥ W₂: the nodes and edges of both, none added. Commutative and associative, up to the order of nodes and to
    renaming.
    """
    second = second_renamed(first, second)[0]
    return Workflow.of((*first.nodes, *second.nodes), (*first.edges, *second.edges))


def sequential(first: Workflow, second: Workflow, interface: Mapping[str, str] | None = None) -> Workflow:
    """W₁ ; W₂: what leads to an output of the first leads on to what the matching input of the second led to.
    Associative.

    `interface` is σ: each output's id of the first to an input's id of the second (before renaming), a bijection
    between equal data types; left out, `matching` finds it. The interface's nodes vanish, and with them the outputs'
    gains and the inputs' priors. Raises WorkflowError, with every reason, where the two do not fit.
    """
    interface = matching(first, second) if interface is None else interface
    if defects := _misfits(first, second, interface):
        raise WorkflowError("these workflows do not fit: " + "; ".join(defects))
    second, names = second_renamed(first, second)
    bridge = {output: names.get(entry, entry) for output, entry in interface.items()}
    gone = {*bridge, *bridge.values()}
    edges = [edge for edge in (*first.edges, *second.edges) if gone.isdisjoint(edge)]
    edges += [
        (u, v) for output, entry in bridge.items() for u in first.predecessors(output) for v in second.successors(entry)
    ]
    return Workflow.of((n for n in (*first.nodes, *second.nodes) if n.id not in gone), edges)


def matching(first: Workflow, second: Workflow) -> dict[str, str]:
    """The one type-preserving bijection σ: V_out,1 → V_in,2; several of one data type are told apart by their titles.

    A data type that is not stated matches only one that is not stated. Raises WorkflowError where there is none, or
    more than one.
    """
    ends: dict[str | None, tuple[list[OutputNode], list[InputNode]]] = defaultdict(lambda: ([], []))
    for output in first.outputs:
        ends[output.data_type][0].append(output)
    for entry in second.inputs:
        ends[entry.data_type][1].append(entry)
    pairs: dict[str, str] = {}
    defects = []
    for data_type, (outputs, entries) in ends.items():
        given, taken = {folded(n.title): n.id for n in outputs}, {folded(n.title): n.id for n in entries}
        if len(outputs) != len(entries):
            defects.append(
                f"{_typed(data_type)}: the first gives {_named(outputs)}, the second takes {_named(entries)}"
            )
        elif len(outputs) == 1:
            pairs[outputs[0].id] = entries[0].id
        elif len(given) == len(outputs) and given.keys() == taken.keys():
            pairs |= {given[title]: taken[title] for title in given}
        else:
            defects.append(
                f"{_typed(data_type)}: which of {_named(outputs)} becomes which of {_named(entries)}? say so "
                f"in `interface`"
            )
    if defects:
        raise WorkflowError("these workflows do not fit: " + "; ".join(defects))
    return pairs


def second_renamed(first: Workflow, second: Workflow) -> tuple[Workflow, dict[str, str]]:
    """The second with every id that the first has too renamed (`a` to `a~2` or the next that is free), and the new
    names by the old.
    """
    taken = first.by_id.keys() | second.by_id.keys()
    names: dict[str, str] = {}
    for node in second.nodes:
        if node.id in first.by_id:
            names[node.id] = next(name for k in count(2) if (name := f"{node.id}~{k}") not in taken)
    if not names:
        return second, names
    nodes = [replace(n, id=names.get(n.id, n.id)) for n in second.nodes]
    return Workflow.of(nodes, [(names.get(u, u), names.get(v, v)) for u, v in second.edges]), names


def _misfits(first: Workflow, second: Workflow, interface: Mapping[str, str]) -> list[str]:
    """Every reason why the interface is no type-preserving bijection from the first's outputs to the
    second's inputs.
    """
    outputs, entries = {n.id: n for n in first.outputs}, {n.id: n for n in second.inputs}
    defects = [f"output {o!r} of the first goes nowhere" for o in outputs if o not in interface]
    defects += [f"input {e!r} of the second comes from nowhere" for e in entries if e not in interface.values()]
    defects += [f"{o!r} is no output of the first" for o in interface if o not in outputs]
    defects += [f"{e!r} is no input of the second" for e in interface.values() if e not in entries]
    defects += [
        f"input {e!r} of the second comes from {n} outputs" for e, n in Counter(interface.values()).items() if n > 1
    ]
    for o, e in interface.items():
        if o in outputs and e in entries and outputs[o].data_type != entries[e].data_type:
            defects.append(
                f"output {o!r} is of {_typed(outputs[o].data_type)}, input {e!r} of {_typed(entries[e].data_type)}"
            )
    return defects


def _typed(data_type: str | None) -> str:
    return "no stated data type" if data_type is None else f"data type {data_type!r}"


def _named(nodes: list[OutputNode] | list[InputNode]) -> str:
    return ", ".join(repr(n.id) for n in nodes) or "nothing"
