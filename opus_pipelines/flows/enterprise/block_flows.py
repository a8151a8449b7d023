"""Flow documents in and out of the block model of `workflow.blocks`.

The trigger becomes the first call, `trigger_<type>`; a user task is the action `user_task`; a while is an IF around a
DOUNTIL. Conditions become encoded queries: `a^b^ORc` is a and (b or c), `^NQ` is the "or" of whole groups, a truth
value is ISNOTEMPTY, its opposite ISEMPTY, and a comparison with nothing has an empty value. What the block model has
no place for is a listed loss; what would change the meaning is an error with its element.
"""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.documents import (
    ACTION,
    DOUNTIL,
    ELSE,
    ELSEIF,
    FLOW_LOGIC,
    FOREACH,
    IF,
    PARALLEL,
    TRY,
    Component,
    FlowDocument,
    FlowDocumentError,
    Input,
    Trigger,
    read_document,
)
from opus_pipelines.flows.enterprise.documents import document_text as write_json
from opus_pipelines.flows.enterprise.values import (
    AND,
    MOST_DEPTH,
    NEW_QUERY,
    OR,
    EncodedQuery,
    Scopes,
    Term,
    parse_query,
    query_text,
    single_pill,
)
from opus_pipelines.workflow.blocks.expressions import (
    COMPARATORS,
    And,
    Comparator,
    Comparison,
    Expression,
    FlowError,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    Scalar,
    is_name,
    negated,
)
from opus_pipelines.workflow.blocks.formats.registry import BuiltIn, Feature
from opus_pipelines.workflow.blocks.model import (
    Block,
    Branch,
    Call,
    Flow,
    For,
    If,
    Parallel,
    Statement,
    UserTask,
    While,
    identified,
)

_OPERATORS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPARATORS: dict[str, Comparator] = {written: c for c in COMPARATORS if (written := _OPERATORS.get(c))}
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_PILL = re.compile(r"\{\{([^{}]+)\}\}")
PathText = Callable[[Path], str]
PathOf = Callable[[str], Path]


def query_of(expression: Expression, pill: PathText) -> EncodedQuery:
    """Returns a condition as a query; `pill` writes a path. Raises FlowDocumentError where no query says the same."""
    groups = expression.operands if isinstance(expression, Or) and _has_and(expression) else (expression,)
    terms: list[Term] = []
    for n, group in enumerate(groups):
        parts = group.operands if isinstance(group, And) else (group,)
        for m, part in enumerate(parts):
            either = part.operands if isinstance(part, Or) else (part,)
            for k, atom in enumerate(either):
                join = OR if k else AND if m or not n else NEW_QUERY
                terms.append(_term(atom, pill, join))
    return EncodedQuery(tuple(terms))


def condition_of(query: EncodedQuery, path: PathOf) -> Expression:
    """Returns a query as a condition; `path` reads a field or a pill. Raises FlowDocumentError for other operators."""
    if not query.terms:
        raise FlowDocumentError("the condition is empty")
    groups: list[list[list[Expression]]] = [[[]]]
    for n, term in enumerate(query.terms):
        atom = _atom(term, path)
        if n and term.join == NEW_QUERY:
            groups.append([[atom]])
        elif n and term.join == AND:
            groups[-1].append([atom])
        else:
            groups[-1][-1].append(atom)
    return _joined(Or, [_joined(And, [_joined(Or, either) for either in group]) for group in groups])


def _has_and(expression: Or) -> bool:
    return any(isinstance(part, And) for part in expression.operands)


def _joined(kind: type[And] | type[Or], parts: list[Expression]) -> Expression:
    if len(parts) == 1:
        return parts[0]
    flat = [inner for part in parts for inner in (part.operands if isinstance(part, kind) else (part,))]
    return kind(tuple(flat))


def _term(atom: Expression, pill: PathText, join: str) -> Term:
    if isinstance(atom, Path):
        return Term(pill(atom), "ISNOTEMPTY", "", join)
    if isinstance(atom, Not) and isinstance(atom.operand, Path):
        return Term(pill(atom.operand), "ISEMPTY", "", join)
    if not isinstance(atom, Comparison):
        raise FlowDocumentError("a condition nests and, or and not deeper than a query can")
    left, operator, right = atom.left, atom.operator, atom.right
    if operator in ("in", "not in") and isinstance(left, Literal) and isinstance(right, Path):
        return Term(pill(right), "LIKE" if operator == "in" else "NOT LIKE", _value(left), join)
    if not isinstance(left, Path) or operator not in _OPERATORS:
        raise FlowDocumentError(f"a query has no {operator} that begins with a constant or ends with a variable")
    if isinstance(right, Path):
        return Term(pill(left), _OPERATORS[operator], pill(right), join)
    if right.value is None and operator in ("==", "!="):
        return Term(pill(left), _OPERATORS[operator], "", join)
    return Term(pill(left), _OPERATORS[operator], _value(right), join)


def _value(literal: Literal) -> str:
    value = literal.value
    text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    if not text or _PILL.fullmatch(text) or Literal(_scalar(text)) != literal:
        raise FlowDocumentError(f"a query cannot tell the constant {value!r} from another one")
    return text


def _scalar(text: str) -> Scalar:
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return text


def _atom(term: Term, path: PathOf) -> Expression:
    field = path(term.field.strip("{}"))
    if term.operator in ("ISEMPTY", "ISNOTEMPTY"):
        return Not(field) if term.operator == "ISEMPTY" else field
    if term.operator == "EMPTYSTRING":
        return Comparison(field, "==", Literal(""))
    if term.operator in ("LIKE", "NOT LIKE"):
        return Comparison(_operand(term.value, path), "in" if term.operator == "LIKE" else "not in", field)
    if term.operator in ("IN", "NOT IN"):
        same: Comparator = "==" if term.operator == "IN" else "!="
        parts: list[Expression] = [Comparison(field, same, _operand(v, path)) for v in term.value.split(",")]
        return _joined(Or if term.operator == "IN" else And, parts)
    if term.operator == "BETWEEN":
        low, _, high = term.value.partition("@")
        return And((Comparison(field, ">=", _operand(low, path)), Comparison(field, "<=", _operand(high, path))))
    if term.operator not in _COMPARATORS:
        raise FlowDocumentError(f"the block model has no {term.operator}")
    right = Literal(None) if not term.value else _operand(term.value, path)
    return Comparison(field, _COMPARATORS[term.operator], right)


def _operand(text: str, path: PathOf) -> Operand:
    pill = _PILL.fullmatch(text)
    return path(pill[1].strip()) if pill else Literal(_scalar(text))


def path_of(text: str) -> Path:
    """Returns `a.b.c` as a path. Raises FlowDocumentError where the block model has no such name."""
    try:
        return Path(tuple(text.strip().split(".")))
    except FlowError:
        raise FlowDocumentError(f"{text[:60]!r} is no variable with attributes") from None


logger = logging.getLogger("opus_pipelines.flows.enterprise")
_TRIGGER, _USER_TASK = "trigger_", "user_task"
_NOTHING = Catalogue({}, {}, {}, {})


@dataclass(frozen=True)
class FlowLoss:
    """What the block model does not keep of an element."""

    element: str
    what: str


def block_flow(document: FlowDocument) -> tuple[Flow, list[FlowLoss]]:
    """Returns the flow in the block model, every statement with an id, and what is lost.

    Raises FlowDocumentError with the element that cannot be expressed.
    """
    reader = _Reader(document)
    return identified(Flow(reader.flow())), reader.losses


def flow_document(flow: Flow) -> FlowDocument:
    """Returns a flow of the block model as a document; raises FlowDocumentError with the step that has no form."""
    return _Writer().document(flow)


class _Reader:
    def __init__(self, document: FlowDocument) -> None:
        self.losses: list[FlowLoss] = []
        self._document = document
        self._children = document.children()
        self._scopes = Scopes(document, _NOTHING)
        count: dict[str, int] = {}
        for c in document.components:
            count[c.definition.lower()] = count.get(c.definition.lower(), 0) + 1
        self._variables = {
            c.order: c.alias or (c.definition.lower() if count[c.definition.lower()] == 1 else _numbered(c))
            for c in document.components
        }
        self._reached = 0

    def flow(self) -> Block:
        trigger, first = self._document.trigger, list[Statement]()
        if len(self._document.triggers) > 1:
            raise FlowDocumentError("trigger: the block model has one")
        if trigger is not None:
            self._note("trigger", trigger.annotation)
            first = [Call(_TRIGGER + trigger.type, trigger.type, self._arguments(trigger.inputs, None))]
        body = (*first, *self._block(None, 1))
        if self._reached < len(self._document.components):
            raise FlowDocumentError("blocks in a circle, or of a component that is not there, cannot be expressed")
        return body

    def _note(self, element: str, annotation: str) -> None:
        if annotation:
            self.losses.append(FlowLoss(element, "the annotation is left out"))

    def _block(self, order: int | None, depth: int) -> Block:
        if depth > MOST_DEPTH:
            raise FlowDocumentError(f"more than {MOST_DEPTH} components stand inside one another")
        statements: list[Statement] = []
        for component in self._children.get(order, []):
            self._reached += 1
            self._note(component.element, component.annotation)
            try:
                statements += self._statements(component, statements, depth)
            except FlowError as error:
                raise FlowDocumentError(f"{component.element}: {error}") from None
            except FlowDocumentError as error:
                text = str(error)
                raise (
                    error if text.startswith("component ") else FlowDocumentError(f"{component.element}: {text}")
                ) from None
        return tuple(statements)

    def _statements(self, component: Component, before: list[Statement], depth: int) -> Block:
        if not component.is_logic:
            return (self._call(component),)
        body = self._block(component.order, depth + 1)
        if component.name in (ELSE, ELSEIF):
            if not before or not isinstance(before[-1], If):
                raise FlowDocumentError(f"{component.name} does not follow IF")
            last = before.pop()
            assert isinstance(last, If)
            if component.name == ELSE:
                return (replace(last, orelse=body),)
            return (replace(last, branches=(*last.branches, Branch(self._condition(component), body))),)
        if component.name == IF:
            return (self._if(component, body),)
        if component.name == FOREACH:
            items = single_pill(component.input("items"))
            if items is None:
                raise FlowDocumentError("the items are no data pill")
            return (For(self._variables[component.order], self._path(items, component), body),)
        if component.name == DOUNTIL:
            return (*body, While(negated(self._condition(component)), body))
        if component.name == PARALLEL:
            return (Parallel(tuple((statement,) for statement in body)),)
        if component.name == TRY:
            self.losses.append(FlowLoss(component.element, "its steps stand without what catches their errors"))
            return body
        self.losses.append(FlowLoss(component.element, "what is done after an error is left out"))
        return ()

    def _if(self, component: Component, body: Block) -> Statement:
        """An IF; around a single DOUNTIL with the opposite condition it is a while."""
        condition, inner = self._condition(component), self._children.get(component.order, [])
        if len(inner) == 1 and inner[0].is_logic and inner[0].name == DOUNTIL:
            last = body[-1]
            if isinstance(last, While) and last.condition == condition:
                return last
        return If((Branch(condition, body),))

    def _call(self, component: Component) -> Statement:
        variable = self._variables[component.order]
        if component.definition == _USER_TASK and component.category == ACTION:
            return UserTask(str(component.input("text") or ""), variable)
        plain = component.category == ACTION and component.scope == "global"
        name = (
            component.definition if plain else "___".join((component.category, component.definition, component.scope))
        )
        return Call(name, variable, self._arguments(component.inputs, component))

    def _arguments(self, inputs: Sequence[Input], owner: Component | None) -> tuple[tuple[str, Operand], ...]:
        return tuple((given.name, self._operand(given, owner)) for given in inputs)

    def _operand(self, given: Input, owner: Component | None) -> Operand:
        pill = single_pill(given.value)
        if pill is not None:
            return self._path(pill, owner)
        if isinstance(given.value, list | dict):
            raise FlowDocumentError(f"the input {given.name} is a list or an object")
        return Literal(given.value)

    def _condition(self, component: Component) -> Expression:
        return condition_of(
            parse_query(str(component.input("condition") or "")), lambda text: self._path(text, component)
        )

    def _path(self, pill: str, owner: Component | None) -> Path:
        """The variable of the step that a pill names; the item of a loop is the loop's variable itself."""
        name, *rest = pill.split(".")
        source = self._scopes.source(name, owner) if owner is not None else None
        if source is not None:
            name = self._variables[source.order]
            if source.is_logic and source.name == FOREACH and rest[:1] == ["item"]:
                rest = rest[1:]
        return path_of(".".join([name, *rest]))


class _Writer:
    def __init__(self) -> None:
        self._components: list[Component] = []
        self._loops: list[str] = []

    def document(self, flow: Flow) -> FlowDocument:
        body, triggers = flow.body, tuple[Trigger, ...]()
        if body and isinstance(body[0], Call) and body[0].activity.startswith(_TRIGGER):
            first, kind = body[0], body[0].activity.removeprefix(_TRIGGER)
            if first.variable != kind or not kind:
                raise FlowDocumentError(f"step {first.id}: the trigger's variable must be called like its type")
            triggers, body = (Trigger(kind, self._inputs(first)),), body[1:]
        self._block(body, None)
        return FlowDocument(triggers, tuple(self._components))

    def _block(self, block: Block, parent: int | None) -> None:
        for statement in block:
            try:
                self._statement(statement, parent)
            except FlowDocumentError as error:
                text = str(error)
                told = text if text.startswith("step ") else f"step {statement.id}: {text}"
                raise FlowDocumentError(told) from None

    def _statement(self, statement: Statement, parent: int | None) -> None:
        if isinstance(statement, Call):
            category, name, scope = ACTION, statement.activity, "global"
            if name.count("___") == 2:
                category, name, scope = name.split("___")
            self._add(name, parent, self._inputs(statement), category, statement.variable, scope)
        elif isinstance(statement, UserTask):
            self._add(_USER_TASK, parent, (Input("text", statement.text),), ACTION, statement.variable)
        elif isinstance(statement, If):
            for n, branch in enumerate(statement.branches):
                self._logic(ELSEIF if n else IF, parent, self._condition(branch.condition), branch.body)
            if statement.orelse:
                self._logic(ELSE, parent, (), statement.orelse)
        elif isinstance(statement, While):
            around = self._add(IF, parent, self._condition(statement.condition), FLOW_LOGIC)
            self._logic(DOUNTIL, around, self._condition(negated(statement.condition)), statement.body)
        elif isinstance(statement, For):
            if not isinstance(statement.iterable, Path):
                raise FlowDocumentError("a loop goes over a variable")
            items = (Input("items", self._pill(statement.iterable)),)
            order = self._add(FOREACH, parent, items, FLOW_LOGIC, statement.variable)
            self._loops.append(statement.variable)
            self._block(statement.body, order)
            self._loops.pop()
        else:
            order = self._add(PARALLEL, parent, (), FLOW_LOGIC)
            for block in statement.branches:
                if len(block) != 1:
                    raise FlowDocumentError("a branch of a parallel holds one step; the JSON has no block for more")
                self._block(block, order)

    def _logic(self, kind: str, parent: int | None, inputs: tuple[Input, ...], body: Block) -> None:
        self._block(body, self._add(kind, parent, inputs, FLOW_LOGIC))

    def _add(self, name: str, block: int | None, inputs: tuple[Input, ...], *more: str) -> int:
        """Adds a component; `more` is its category, its alias and its scope."""
        category, alias, scope = (*more, *("action", "", "global")[len(more) :])
        order = len(self._components) + 1
        self._components.append(Component(name, order, category, block, inputs, "", scope, alias))
        return order

    def _inputs(self, call: Call) -> tuple[Input, ...]:
        return tuple(Input(name, self._value(name, operand)) for name, operand in call.arguments)

    def _value(self, name: str, operand: Operand) -> object:
        if isinstance(operand, Path):
            return self._pill(operand)
        if single_pill(operand.value) is not None:
            raise FlowDocumentError(f"the text of {name} would be read as a data pill")
        return operand.value

    def _pill(self, path: Path) -> str:
        name, *rest = path.parts
        parts = [name, "item", *rest] if name in self._loops else [name, *rest]
        return "{{" + ".".join(parts) + "}}"

    def _condition(self, expression: Expression) -> tuple[Input, ...]:
        return (Input("condition", query_text(query_of(expression, self._pill))),)


def _numbered(component: Component) -> str:
    name = f"{component.definition.lower()}_{component.order}"
    return name if is_name(name) else f"step_{component.order}"


def _parse(content: bytes, _name: str) -> Flow:
    try:
        flow, losses = block_flow(read_document(content.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise FlowError(f"the file is not UTF-8 (byte {error.start})") from None
    except FlowDocumentError as error:
        raise FlowError(str(error)) from None
    for loss in losses:
        logger.warning("not kept: %s: %s", loss.element, loss.what)
    return flow


def _write(flow: Flow) -> bytes:
    try:
        return write_json(flow_document(flow)).encode()
    except FlowDocumentError as error:
        raise FlowError(str(error)) from None


SERVICENOW = BuiltIn((), frozenset({Feature.PARALLEL, Feature.ARGUMENTS, Feature.FREE_NAMES}), _parse, _write)
