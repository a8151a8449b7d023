"""FlowSim, TreeBLEU, trigger match and component match of block-structured flows (arXiv 2505.24189, and StarFlow).

A flow is the JSON object of the papers: {"trigger": {"type", "inputs"}, "components": [{"category", "definition",
"scope", "order", "block", "inputs"}]}; a subflow has "inputs" and "outputs" of its own. Figures are those of the
published program, with the defects that it is known to have named where they matter.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opus_pipelines.core.errors import InputError

# Labels that every flow has or that only group others: they cost nothing and do not count.
_QUERIES = frozenset({"condition", "conditions", "email_conditions", "values", "fields", "field_values"})
FREE = frozenset({"flow", "trigger", "components", "inputs", "outputs"}) | _QUERIES
_KINDS = ("action", "flowlogic", "subflow")
_UNEQUAL_STEP = 2.0  # relabelling a trigger type or a step costs as much as removing one and adding the other
_OPERATORS = (
    "NOT LIKE|NOT IN|STARTSWITH|ENDSWITH|ISNOTEMPTY|ISEMPTY|EMPTYSTRING|BETWEEN|SAMEAS|NOTON|CHANGESTO|CHANGESFROM|"
    "VALCHANGES|RELATIVEGT|RELATIVEGE|RELATIVELE|RELATIVELT|LIKE|IN|ON|!=|>=|<=|=|>|<"
)
_CONDITION = re.compile(rf"(\{{\{{[^{{}}]+\}}\}}|[A-Za-z_][\w.]*?)\s*({_OPERATORS})(.*)", re.DOTALL)
_MOST_NODES = 2_000  # of a tree: the distance of two trees takes time of the fourth power of their size
MOST_DEPTH = 200  # components inside one another
# How alike two free texts of an input are, in [0, 1].
Alike = Callable[[str, str], float]
_JOINS = re.compile(r"(\^OR|\^NQ|\^EQ|\^)")
_Flow = Mapping[str, Any]


class FlowTooLarge(InputError):
    """A flow has too many components, or components too deep inside one another, to be compared."""


@dataclass(frozen=True)
class Tree:
    """An ordered tree of labels."""

    label: str
    children: tuple["Tree", ...] = ()

    def nodes(self) -> Iterator["Tree"]:
        """Yields all nodes, children before their parent."""
        stack = [(self, False)]
        while stack:
            node, is_seen = stack.pop()
            if is_seen or not node.children:
                yield node
            else:
                stack.append((node, True))
                stack += [(child, False) for child in reversed(node.children)]


def flow_tree(flow: _Flow, with_inputs: bool = True, trigger_types: set[str] | None = None) -> Tree:
    """Returns the tree of a flow: `flow` with the trigger, the inputs and outputs of a subflow, and the components.

    Components nest by `block`, the order of the parent. With `with_inputs` false it is the tree of the outline. Adds
    the type of the trigger to `trigger_types`.
    """
    children = []
    if trigger := flow.get("trigger"):
        kind = str(trigger.get("type") or "")
        if trigger_types is not None:
            trigger_types.add(kind)
        children.append(Tree("trigger", (Tree(kind, _inputs(trigger, with_inputs)),)))
    else:
        children.append(Tree("trigger"))
    for part in ("inputs", "outputs"):
        if items := (flow.get(part) or {}).get("items"):
            children.append(Tree(part, tuple(Tree(_declared(item)) for item in items)))
    return Tree("flow", (*children, Tree("components", _nested(list(flow.get("components") or ()), with_inputs))))


def flow_similarity(flow: _Flow, reference: _Flow, with_inputs: bool = True, alike: Alike | None = None) -> float:
    """Returns FlowSim = 1 - TED / (|F| + |F_r|): the tree edit distance over the labels that count; 1 for two empty.

    With `alike`, two texts of the same input cost 1 - alike(text, other) instead of 1. Raises FlowTooLarge where a flow
    has more than `_MOST_NODES` labels, or is nested too deeply.
    """
    types: set[str] = set()
    own, gold = flow_tree(flow, with_inputs, types), flow_tree(reference, with_inputs, types)
    if (most := max(sum(1 for _ in tree.nodes()) for tree in (own, gold))) > _MOST_NODES:
        raise FlowTooLarge(f"the flow has {most:,} labels; flows of more than {_MOST_NODES:,} are not compared")
    size = _size(own) + _size(gold)
    return 1.0 - tree_edit_distance(own, gold, types, alike) / size if size else 1.0


def tree_bleu(flow: _Flow, reference: _Flow, with_inputs: bool = True) -> float:
    """Returns the share of the (parent, child) labels of the reference that the flow has; 0 where it has none."""
    own, gold = (_parent_child(flow_tree(f, with_inputs)) for f in (flow, reference))
    return len(own & gold) / len(gold) if gold else 0.0


def trigger_match(flow: _Flow, reference: _Flow) -> float | None:
    """Returns 1 where type and inputs of the triggers are equal, else 0; None where neither flow has a trigger."""
    own, gold = (f.get("trigger") or None for f in (flow, reference))
    if own is None and gold is None:
        return None
    return float(_canonical_trigger(own) == _canonical_trigger(gold))


def component_match(flow: _Flow, reference: _Flow) -> float:
    """Returns the Jaccard index of the sets of components; 1 where both flows have none."""
    own, gold = ({_step(c) for c in f.get("components") or ()} for f in (flow, reference))
    return len(own & gold) / len(own | gold) if own | gold else 1.0


def tree_edit_distance(
    own: Tree,
    gold: Tree,
    trigger_types: set[str] = frozenset(),  # type: ignore[assignment]
    alike: Alike | None = None,
) -> float:
    """Returns the cost of the cheapest edit of ordered trees (Zhang and Shasha, 1989).

    A node costs 1 to add or remove, but 0 where its label is free or empty. To relabel costs 0 where the labels are
    equal, 2 where one is a trigger type or a step, else 1; with `alike`, less for similar texts of the same input.
    """
    first, second = _Postorder(own), _Postorder(gold)
    distance = [[0.0] * len(second.labels) for _ in first.labels]
    costs: dict[tuple[str, str], float] = {}

    def relabel(one: str, other: str) -> float:
        if (one, other) not in costs:
            costs[one, other] = _relabel(one, other, trigger_types, alike)
        return costs[one, other]

    for i in first.key_roots:
        for j in second.key_roots:
            _forest_distances(first, second, (i, j), distance, relabel)
    return distance[-1][-1]


class _Postorder:
    """The nodes of a tree in postorder, the leftmost leaf below each, and the roots from which forests are compared."""

    def __init__(self, tree: Tree) -> None:
        self.labels: list[str] = []
        self.leftmost: list[int] = []
        leaves: list[int] = []  # the leftmost leaf of each tree whose parent is still to come
        for node in tree.nodes():
            first = len(leaves) - len(node.children)
            leaf = leaves[first] if node.children else len(self.labels)
            leaves[first:] = [leaf]
            self.labels.append(node.label)
            self.leftmost.append(leaf)
        last = {leaf: n for n, leaf in enumerate(self.leftmost)}
        self.key_roots = sorted(last.values())


def _forest_distances(
    first: _Postorder,
    second: _Postorder,
    roots: tuple[int, int],
    distance: list[list[float]],
    relabel: Callable[[str, str], float],
) -> None:
    i, j = roots
    left, right = first.leftmost[i], second.leftmost[j]
    rows, columns = i - left + 2, j - right + 2
    forest = [[0.0] * columns for _ in range(rows)]
    for a in range(1, rows):
        forest[a][0] = forest[a - 1][0] + _cost(first.labels[left + a - 1])
    for b in range(1, columns):
        forest[0][b] = forest[0][b - 1] + _cost(second.labels[right + b - 1])
    for a in range(1, rows):
        for b in range(1, columns):
            x, y = left + a - 1, right + b - 1
            own, gold = first.labels[x], second.labels[y]
            cheapest = min(forest[a - 1][b] + _cost(own), forest[a][b - 1] + _cost(gold))
            if first.leftmost[x] == left and second.leftmost[y] == right:
                forest[a][b] = min(cheapest, forest[a - 1][b - 1] + relabel(own, gold))
                distance[x][y] = forest[a][b]
            else:
                before = forest[first.leftmost[x] - left][second.leftmost[y] - right]
                forest[a][b] = min(cheapest, before + distance[x][y])


def _cost(label: str) -> float:
    return 0.0 if label in FREE or not label else 1.0


def _relabel(own: str, gold: str, types: set[str], alike: Alike | None) -> float:
    if own == gold:
        return 0.0
    if any(label in types or label.startswith(_KINDS) for label in (own, gold)):
        return _UNEQUAL_STEP
    name, has_value, text = own.partition(": ")
    other_name, _, other = gold.partition(": ")
    if alike is None or not has_value or name != other_name:
        return 1.0
    return 1.0 - min(1.0, max(0.0, alike(text, other)))


def _size(tree: Tree) -> int:
    """Labels that are not free.

    The published program counts an empty label, too, though it costs nothing, and cuts a label at its first colon.
    """
    return sum(node.label.partition(":")[0] not in FREE for node in tree.nodes())


def _parent_child(tree: Tree) -> set[tuple[str, str]]:
    pairs = {(node.label, child.label) for node in tree.nodes() for child in node.children}
    return pairs - {("flow", "trigger"), ("flow", "components")}


def _step(component: Mapping[str, Any]) -> str:
    category, definition = str(component.get("category") or "action"), str(component.get("definition") or "")
    name = definition.upper() if category == "flowlogic" else definition
    return f"{category}___{name}___{component.get('scope') or 'global'}"


def _nested(components: Sequence[Mapping[str, Any]], with_inputs: bool) -> tuple[Tree, ...]:
    """The components from the top. One that names itself as its parent, or a parent in a circle, stands in no block."""
    inside: dict[Any, list[Mapping[str, Any]]] = {}
    for component in components:
        inside.setdefault(component.get("block"), []).append(component)
    holders: set[Any] = set()

    def block(order: Any, depth: int) -> tuple[Tree, ...]:
        if depth > MOST_DEPTH:
            raise FlowTooLarge(
                f"more than {MOST_DEPTH} components stand inside one another; such flows are not compared"
            )
        holders.add(order)
        trees = []
        for component in inside.get(order, ()):
            own = component.get("order")
            nested = () if own is None or own in holders else block(own, depth + 1)
            trees.append(Tree(_step(component), (*_inputs(component, with_inputs), *nested)))
        return tuple(trees)

    return block(None, 0)


def _inputs(part: Mapping[str, Any], with_inputs: bool) -> tuple[Tree, ...]:
    inputs = part.get("inputs") or ()
    if not with_inputs or not inputs:
        return ()
    return (Tree("inputs", tuple(_input(i) for i in sorted(inputs, key=lambda i: str(i.get("name"))))),)


def _input(given: Mapping[str, Any]) -> Tree:
    name, value = str(given.get("name")), given.get("value")
    if name in _QUERIES and isinstance(value, str):
        return Tree(name, _query(value))
    return Tree(f"{name}: {value if isinstance(value, str) else json.dumps(value, sort_keys=True)}")


def _query(text: str) -> tuple[Tree, ...]:
    """An encoded query as trees: its parts by field; several hang together by their sorted logical operators."""
    pieces = _JOINS.split(text)
    parts = sorted((_part(piece) for piece in pieces[::2] if piece.strip()), key=lambda t: t.label)
    joins = sorted(join for join in pieces[1::2] if join != "^EQ")[: max(0, len(parts) - 1)]
    if not parts:
        return ()
    chained = parts[-1]
    for part, join in zip(reversed(parts[:-1]), reversed(joins), strict=False):
        chained = Tree(join, (part, chained))
    return (chained,)


def _part(text: str) -> Tree:
    found = _CONDITION.fullmatch(text.strip())
    if found is None:
        return Tree(text.strip())
    field, operator, value = found.groups()
    return Tree(field, (Tree(operator), Tree(value)))


def _declared(item: Mapping[str, Any]) -> str:
    reference = f" {item['reference']}" if item.get("reference") else ""
    return f"{item.get('name')}: {item.get('type')}{reference}"


def _canonical_trigger(trigger: Mapping[str, Any] | None) -> str:
    if trigger is None:
        return ""
    inputs = sorted(trigger.get("inputs") or (), key=lambda i: str(i.get("name")))
    return json.dumps([trigger.get("type"), inputs], sort_keys=True)
