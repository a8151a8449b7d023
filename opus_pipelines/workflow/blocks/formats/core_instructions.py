"""The instructions of CoRE steps that say exactly what a flow's statement says, as text and back.

    call v = activity(name=operand)     ask v = "text"     test expression     for each v in expression

Every other instruction is in the words of a person: a process step is a user task, and a decision a question whose
answer is compared with the keys of its branches.
"""

import ast
import re

from opus_pipelines.workflow.blocks.expressions import Expression, FlowError, Literal, Operand, Path, is_name
from opus_pipelines.workflow.blocks.formats.core_text import FIELD, CoreStep
from opus_pipelines.workflow.blocks.formats.python_ir import parse_condition, quoted, write_condition
from opus_pipelines.workflow.blocks.model import Call, For, UserTask

END = "End of the flow."  # the instruction of a terminal step that does nothing
YES, NO, ITEM, DONE = "yes", "no", "item", "done"
_CALL = re.compile(r"call (\w+) = (\w+)\((.*)\)", re.DOTALL)
_ASK = re.compile(r"ask (\w+) = (\".*\")", re.DOTALL)
_EACH = re.compile(r"for each (\w+) in (.+)", re.DOTALL)
_FORMAL = re.compile(r"(call|ask|test|for each) ")


def written(statement: Call | UserTask) -> str:
    """Returns the formal instruction of a statement; raises FlowError for a name that is none."""
    if isinstance(statement, UserTask):
        return f"ask {_name(statement.variable)} = {_escaped(quoted(statement.text))}"
    arguments = ", ".join(f"{_name(key)}={_escaped(write_condition(value))}" for key, value in statement.arguments)
    return f"call {_name(statement.variable)} = {_name(statement.activity)}({arguments})"


def written_test(condition: Expression) -> str:
    """Returns the instruction of a decision with the branches yes and no."""
    return f"test {_escaped(write_condition(condition))}"


def written_loop(loop: For) -> str:
    """Returns the instruction of a decision with the branches item and done."""
    return f"for each {_name(loop.variable)} in {_escaped(write_condition(loop.iterable))}"


def is_plain(text: str) -> bool:
    """Returns whether a text can stand as an instruction in the words of a person."""
    is_line = text == text.strip() and not any(mark in text for mark in "\r\n")
    return is_line and bool(text) and FIELD not in text and text != END and not _FORMAL.match(text)


def statement_of(step: CoreStep, variable: str) -> Call | UserTask:
    """Returns what a process or terminal step does. Raises FlowError with its line where a formal instruction fails."""
    if found := _CALL.fullmatch(step.instruction):
        try:
            return Call(found[2], found[1], _arguments(found[3]), id=step.name)
        except FlowError as error:
            raise FlowError(f"step {step.name!r}: {error}", step.line or None) from None
    if found := _ASK.fullmatch(step.instruction):
        text = _constant(found[2], step)
        return UserTask(text, found[1], id=step.name)
    if re.match("(call|ask) \\w+ = ", step.instruction):
        raise FlowError(f"step {step.name!r}: the call is not complete: {step.instruction[:80]!r}", step.line or None)
    return UserTask(step.instruction, variable, id=step.name)


def test_of(step: CoreStep) -> Expression | None:
    """Returns the condition of a decision with the branches yes and no; None for a question in words."""
    keys = sorted(key.lower() for key, _ in step.branches)
    if not step.instruction.startswith("test ") or keys != [NO, YES]:
        return None
    try:
        return parse_condition(step.instruction.removeprefix("test "))
    except FlowError as error:
        raise FlowError(f"step {step.name!r}: {error}", step.line or None) from None


def loop_of(step: CoreStep) -> tuple[str, Expression] | None:
    """Returns the variable and the iterable of a decision with the branches item and done; else None."""
    found = _EACH.fullmatch(step.instruction)
    if not found or sorted(key.lower() for key, _ in step.branches) != [DONE, ITEM]:
        return None
    try:
        return found[1], parse_condition(found[2])
    except FlowError as error:
        raise FlowError(f"step {step.name!r}: {error}", step.line or None) from None


def variable_of(name: str) -> str:
    """Returns the variable that holds the answer of a step in words."""
    text = re.sub(r"\W+", "_", name.lower()).strip("_") or "answer"
    return text if is_name(text) else f"answer_{text}"


def _arguments(text: str) -> tuple[tuple[str, Operand], ...]:
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FlowError(f"the arguments are not well formed: {text[:80]!r}") from None
    if not isinstance(call, ast.Call) or call.args or any(one.arg is None for one in call.keywords):
        raise FlowError("an argument needs its name, as in f(name=value)")
    pairs = []
    for one in call.keywords:
        value = parse_condition(ast.unparse(one.value))
        if not isinstance(value, Literal | Path):
            raise FlowError(f"the argument {one.arg!r} is no constant and no variable")
        pairs.append((one.arg or "", value))
    return tuple(pairs)


def _constant(text: str, step: CoreStep) -> str:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, str):
        raise FlowError(f"step {step.name!r}: the text after 'ask' is no text in quotes", step.line or None)
    return value


def _escaped(text: str) -> str:
    """Writes the colons of texts so that no field ends inside them."""
    return text.replace(FIELD, ":\\x3a:").replace(FIELD, ":\\x3a:")


def _name(name: str) -> str:
    if not is_name(name):
        raise FlowError(f"{name!r} is no name of a variable or an activity in a program")
    return name
