"""The Python IR of Flow-Bench (arXiv 2505.11646): a flow as a few lines of Python, which are parsed and never run.

    stmt := NAME '=' call | 'for' NAME 'in' expr ':' block | 'while' expr ':' block
          | 'if' expr ':' block ('elif' expr ':' block)* ('else' ':' block)?
    call := ACTIVITY '(' ')' | 'user_task' '(' STRING ')'
    expr := operand | operand comparison operand | 'not' expr | expr 'and' expr | expr 'or' expr
    operand := NAME ('.' NAME)* | STRING | NUMBER | True | False | None

`true`, `false`, `null` and `Null` are read as constants. Everything else is an error with its line and column.
"""

import ast
import re
import warnings
from typing import NoReturn

from opus_pipelines.workflow.blocks.expressions import (
    CONSTANTS,
    USER_TASK,
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
    is_name,
)
from opus_pipelines.workflow.blocks.model import (
    MAX_DEPTH,
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

_LARGEST_BYTES = 100_000
_OPERATORS: dict[type[ast.cmpop], Comparator] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_INDENT = "  "
CALL = "call"  # `call("Send mail")` in a step: an activity whose name is no Python name


def parse_ir(text: str, name: str = "") -> Flow:
    """Returns the flow of this text, every statement with an id. An empty text is a flow without a step.

    Raises FlowError with line and column at the first thing that the grammar does not know, at a text of more than
    100,000 bytes, and at deep nesting. Nothing of the text is run.
    """
    if len(text) > _LARGEST_BYTES or len(text.encode("utf-8", "replace")) > _LARGEST_BYTES:
        raise FlowError(f"the text has more than {_LARGEST_BYTES:,} bytes; a flow may have no more")
    return identified(Flow(_Reader(text).block(_tree(text).body, 1), name))


def parse_condition(text: str) -> Expression:
    """Returns the expression of this text; raises FlowError as `parse` does."""
    if len(text) > _LARGEST_BYTES:
        raise FlowError(f"the condition has more than {_LARGEST_BYTES:,} bytes")
    body = _tree(text.strip()).body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise FlowError(f"{_short(text)} is no condition", 1, 1)
    return _Reader(text.strip()).expression(body[0].value, 1)


def parse_steps(text: str) -> Block:
    """Returns the steps of a text in the wider grammar of `write_step`: calls may have arguments and free names."""
    if len(text) > _LARGEST_BYTES:
        raise FlowError(f"the text has more than {_LARGEST_BYTES:,} characters")
    return _Reader(text, wide=True).block(_tree(text).body, 1)


def parse_step(text: str) -> Call | UserTask:
    """Returns the one step of this text, as `write_step` writes it; raises FlowError with line and column."""
    body = _tree(text).body
    if len(text) > _LARGEST_BYTES or len(body) != 1 or not isinstance(body[0], ast.Assign):
        raise FlowError(f"{_short(text)} is no step", 1, 1)
    return _Reader(text, wide=True).assignment(body[0])


def _tree(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes are a matter of the text, not of this program
            tree = ast.parse(text, mode="exec")
    except SyntaxError as error:
        raise FlowError(f"the text is not Python: {error.msg}", error.lineno, error.offset) from None
    except (ValueError, RecursionError, MemoryError, UnicodeError) as error:
        raise FlowError(f"the text cannot be read: {error or 'it is nested too deeply'}") from None
    return tree


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 60 else flat[:57] + "...")


class _Reader:
    """Turns the tree of Python's parser into records; whatever is not in the grammar is an error."""

    def __init__(self, text: str, wide: bool = False) -> None:
        self._lines, self._wide = text.split("\n"), wide

    def fail(self, node: ast.AST, what: str) -> NoReturn:
        line = getattr(node, "lineno", 1)
        before = self._lines[line - 1].encode("utf-8", "replace")[: getattr(node, "col_offset", 0)]
        raise FlowError(what, line, len(before.decode("utf-8", "replace")) + 1)

    def block(self, nodes: list[ast.stmt], level: int) -> Block:
        if level > MAX_DEPTH:
            self.fail(nodes[0], f"more than {MAX_DEPTH} statements stand inside one another")
        return tuple(self.statement(node, level) for node in nodes)

    def statement(self, node: ast.stmt, level: int) -> Statement:
        if isinstance(node, ast.Assign):
            return self.assignment(node)
        if isinstance(node, ast.If):
            return self.condition(node, level)
        if isinstance(node, ast.For | ast.While) and node.orelse:
            self.fail(node.orelse[0], "a loop has no else in a flow")
        if isinstance(node, ast.For):
            variable, iterable = self.name(node.target), self.expression(node.iter, 1)
            return For(variable, iterable, self.block(node.body, level + 1))
        if isinstance(node, ast.While):
            return While(self.expression(node.test, 1), self.block(node.body, level + 1))
        self.fail(node, f"a flow has no {_KINDS.get(type(node), type(node).__name__)}")

    def condition(self, node: ast.If, level: int) -> If:
        branches = [Branch(self.expression(node.test, 1), self.block(node.body, level + 1))]
        while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node = node.orelse[0]
            branches.append(Branch(self.expression(node.test, 1), self.block(node.body, level + 1)))
        return If(tuple(branches), self.block(node.orelse, level + 1) if node.orelse else ())

    def assignment(self, node: ast.Assign) -> Call | UserTask:
        if len(node.targets) != 1:
            self.fail(node, "one call sets one variable")
        variable, call = self.name(node.targets[0]), node.value
        if not isinstance(call, ast.Call):
            self.fail(call, "only a call may stand right of '='")
        if not isinstance(call.func, ast.Name):
            self.fail(call.func, "only the name of an activity can be called")
        if call.func.id == USER_TASK:
            text = call.args[0] if len(call.args) == 1 and not call.keywords else None
            if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
                self.fail(call, "user_task takes one text in quotes")
            return UserTask(text.value, variable)
        if self._wide and call.func.id == CALL and len(call.args) == 1 and isinstance(call.args[0], ast.Constant):
            return Call(str(call.args[0].value), variable, self.arguments(call))
        activity = self.name(call.func)
        if self._wide and not call.args:
            return Call(activity, variable, self.arguments(call))
        if call.args or call.keywords:
            given = call.args[0] if call.args else call.keywords[0].value
            self.fail(given, f"the activity {activity} takes no arguments here")
        return Call(activity, variable)

    def arguments(self, call: ast.Call) -> tuple[tuple[str, Operand], ...]:
        return tuple((keyword.arg or "", self.operand(keyword.value)) for keyword in call.keywords)

    def name(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            self.fail(node, f"{_short(ast.unparse(node))} is no plain name")
        if not is_name(node.id):
            self.fail(node, f"{node.id!r} may not be the name of a variable or an activity")
        return node.id

    def expression(self, node: ast.expr, level: int) -> Expression:
        if level > MAX_DEPTH:
            self.fail(node, f"more than {MAX_DEPTH} conditions stand inside one another")
        if isinstance(node, ast.BoolOp):
            parts = tuple(self.expression(part, level + 1) for part in node.values)
            return And(parts) if isinstance(node.op, ast.And) else Or(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Not(self.expression(node.operand, level + 1))
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        return self.operand(node)

    def comparison(self, node: ast.Compare) -> Comparison:
        if len(node.ops) != 1:
            self.fail(node, "a chain of comparisons; join two comparisons with 'and' instead")
        operator = _OPERATORS.get(type(node.ops[0]))
        if operator is None:
            self.fail(node, "'is' compares objects; use '==' or '!='")
        return Comparison(self.operand(node.left), operator, self.operand(node.comparators[0]))

    def operand(self, node: ast.expr) -> Operand:
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str | int | float)):
            return self.literal(node, node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if isinstance(value, int | float) and not isinstance(value, bool):
                return self.literal(node, -value)
        if isinstance(node, ast.Name) and node.id in CONSTANTS:
            return Literal(CONSTANTS[node.id])
        if isinstance(node, ast.Name | ast.Attribute):
            return self.path(node)
        self.fail(node, f"{_short(ast.unparse(node))} is no variable, no attribute of one, and no constant")

    def literal(self, node: ast.expr, value: str | int | float | None) -> Literal:
        try:
            return Literal(value)
        except FlowError as error:
            self.fail(node, str(error))

    def path(self, node: ast.expr) -> Path:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            if node.attr.startswith("__"):
                self.fail(node, f"the attribute {node.attr!r} may not be read")
            parts.append(node.attr)
            node = node.value
        return Path((self.name(node), *reversed(parts)))


_KINDS: dict[type[ast.stmt], str] = {
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.FunctionDef: "function",
    ast.ClassDef: "class",
    ast.Expr: "expression that sets no variable",
    ast.With: "with",
    ast.Try: "try",
    ast.Delete: "del",
    ast.Return: "return",
    ast.Raise: "raise",
    ast.Pass: "pass; leave the block out",
    ast.AugAssign: "assignment with an operator",
    ast.AnnAssign: "assignment with a type",
}


def write_steps(block: Block) -> str:
    """Returns a block in the wider grammar of `write_step`, for `parse_steps`; a parallel is an error."""
    return "\n".join(_lines(block, "", wide=True))


def write_ir(flow: Flow) -> str:
    """Returns the flow as text without a line break at its end; equal flows give equal texts.

    Raises FlowError where the grammar cannot express a statement: a parallel, arguments of a call, or a name that is
    no Python name. `formats.registry` reduces a flow first and lists what is lost.
    """
    return "\n".join(_lines(flow.body, ""))


def _lines(block: Block, indent: str, wide: bool = False) -> list[str]:
    lines: list[str] = []
    for statement in block:
        if isinstance(statement, Call | UserTask):
            lines.append(indent + (write_step(statement) if wide else _plain_step(statement)))
        elif isinstance(statement, If):
            for i, branch in enumerate(statement.branches):
                lines.append(f"{indent}{'elif' if i else 'if'} {write_condition(branch.condition)}:")
                lines += _lines(branch.body, indent + _INDENT, wide)
            if statement.orelse:
                lines += [f"{indent}else:", *_lines(statement.orelse, indent + _INDENT, wide)]
        elif isinstance(statement, Parallel):
            raise FlowError(f"step {statement.id}: the Python IR has no parallel")
        else:
            lines += [f"{indent}{loop_header(statement)}:", *_lines(statement.body, indent + _INDENT, wide)]
    return lines


def loop_header(loop: For | While) -> str:
    """Returns the header of a loop without its colon: `for x in xs` or `while x`."""
    if isinstance(loop, For):
        return f"for {loop.variable} in {write_condition(loop.iterable)}"
    return f"while {write_condition(loop.condition)}"


def _plain_step(step: Call | UserTask) -> str:
    if isinstance(step, Call) and step.arguments:
        raise FlowError(f"step {step.id}: a call in the Python IR has no arguments ({step.activity})")
    if isinstance(step, Call):
        return f"{step.variable} = {_name(step.activity)}()"
    return write_step(step)


def _name(name: str) -> str:
    if not is_name(name):
        raise FlowError(f"{name!r} is no name of the Python IR")
    return name


def write_step(step: Call | UserTask) -> str:
    """Returns one step on one line, with arguments: `x = A(to="me")`; equal steps give equal texts.

    The other formats use it where they show a step. An activity whose name is no Python name is `call("Send mail")`.
    """
    if isinstance(step, UserTask):
        return f"{step.variable} = {USER_TASK}({quoted(step.text)})"
    given = [f"{name}={write_condition(value)}" for name, value in step.arguments]
    if is_name(step.activity):
        return f"{step.variable} = {step.activity}({', '.join(given)})"
    return f"{step.variable} = {CALL}({', '.join([quoted(step.activity), *given])})"


def quoted(text: str) -> str:
    """Returns the text as a Python literal in double quotes on one line."""
    inner = repr(text + "'\"")[1:-4]  # with both quotes inside, repr writes single quotes and escapes the apostrophe

    def swap(found: re.Match[str]) -> str:
        return {"\\'": "'", '"': '\\"'}.get(found.group(), found.group())

    return '"' + re.sub(r'\\.|"', swap, inner) + '"'


def write_condition(expression: Expression) -> str:
    """Returns a condition, an iterable or an argument as text."""
    if isinstance(expression, Literal):
        return quoted(expression.value) if isinstance(expression.value, str) else repr(expression.value)
    if isinstance(expression, Path):
        return ".".join(expression.parts)
    if isinstance(expression, Comparison):
        return f"{write_condition(expression.left)} {expression.operator} {write_condition(expression.right)}"
    if isinstance(expression, Not):
        return f"not {_inner(expression.operand)}"
    word = " and " if isinstance(expression, And) else " or "
    return word.join(_inner(part) for part in expression.operands)


def _inner(expression: Expression) -> str:
    text = write_condition(expression)
    return f"({text})" if isinstance(expression, And | Or) else text
