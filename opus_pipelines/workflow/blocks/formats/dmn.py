"""A flow that is one if as a DMN 1.3 decision table, and back: a rule for each branch, the first that fits is taken.

The inputs are the paths that the conditions read, the outputs the kind of step, what it does, and its variable. A rule
holds a conjunction of comparisons of a path with a constant.
"""

import json
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from opus_pipelines.core.formatting import SAFE_XML
from opus_pipelines.workflow.blocks.expressions import (
    FEEL,
    And,
    Comparator,
    Comparison,
    Expression,
    FlowError,
    Literal,
    Path,
    constant,
    read_dialect,
)
from opus_pipelines.workflow.blocks.formats.registry import BuiltIn, Feature
from opus_pipelines.workflow.blocks.model import Block, Branch, Call, Flow, If, UserTask, identified

_NAMESPACE = "https://www.omg.org/spec/DMN/20191111/MODEL/"
_LARGEST_BYTES = 1 << 22
_OUTPUTS = ("kind", "step", "variable")
_ORDERS: tuple[Comparator, ...] = ("<=", ">=", "<", ">")


def write_dmn(flow: Flow) -> bytes:
    """Returns the table; raises FlowError naming the step where the flow is not one if of single steps."""
    if len(flow.body) != 1 or not isinstance(flow.body[0], If):
        raise FlowError(f"a decision table is one if; this flow has {len(flow.body)} steps")
    statement = flow.body[0]
    rules = [(_row(branch.condition), _single(branch.body)) for branch in statement.branches]
    if statement.orelse:
        rules.append(([], _single(statement.orelse)))
    inputs = list(dict.fromkeys(path for row, _ in rules for path, _ in row))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<definitions xmlns="{_NAMESPACE}" id="definitions" name="flow" namespace="urn:opus-pipelines:flow:1">',
        f'  <decision id="decision" name={quoteattr(flow.name or "Decision")}>',
        '    <decisionTable id="table" hitPolicy="FIRST">',
    ]
    for i, path in enumerate(inputs, start=1):
        lines += [
            f'      <input id="input_{i}" label={quoteattr(path)}>',
            f'        <inputExpression id="expression_{i}"><text>{escape(path)}</text></inputExpression>',
            "      </input>",
        ]
    lines += [f'      <output id="output_{name}" name="{name}" typeRef="string" />' for name in _OUTPUTS]
    for i, (row, step) in enumerate(rules, start=1):
        lines.append(f'      <rule id="rule_{i}">')
        tests = dict(row)
        for j, path in enumerate(inputs, start=1):
            text = escape(tests.get(path, "-"))
            lines.append(f'        <inputEntry id="in_{i}_{j}"><text>{text}</text></inputEntry>')
        told = step.activity if isinstance(step, Call) else step.text
        values = ("call" if isinstance(step, Call) else "user_task", told, step.variable)
        for name, value in zip(_OUTPUTS, values, strict=True):
            text = escape(json.dumps(value))
            lines.append(f'        <outputEntry id="out_{i}_{name}"><text>{text}</text></outputEntry>')
        lines.append("      </rule>")
    lines += ["    </decisionTable>", "  </decision>", "</definitions>"]
    return ("\n".join(lines) + "\n").encode()


def _single(block: Block) -> Call | UserTask:
    if (
        len(block) != 1
        or not isinstance(block[0], Call | UserTask)
        or (isinstance(block[0], Call) and block[0].arguments)
    ):
        raise FlowError(f"step {block[0].id}: a rule of a decision table has one step without arguments as its result")
    return block[0]


def _row(condition: Expression) -> list[tuple[str, str]]:
    """Returns the tests of a rule: path and unary test."""
    parts = condition.operands if isinstance(condition, And) else (condition,)
    row: list[tuple[str, str]] = []
    for part in parts:
        if not isinstance(part, Comparison) or not isinstance(part.left, Path) or not isinstance(part.right, Literal):
            raise FlowError("a rule of a decision table compares variables with constants, joined by 'and'")
        path, value = ".".join(part.left.parts), constant(part.right)
        if part.operator in ("in", "not in") or path in dict(row):
            raise FlowError(f"a rule of a decision table has one comparison of {path}, without 'in'")
        negative = f"not({value})"
        row.append((path, {"==": value, "!=": negative}.get(part.operator, f"{part.operator} {value}")))
    return row


def read_dmn(content: bytes, name: str = "") -> Flow:
    """Returns the flow of a decision table with the hit policy FIRST or UNIQUE; raises FlowError with the line."""
    table, title = _table(content)
    paths = []
    for each in _children(table, "input"):
        paths.append(_path("".join(each.itertext()).strip(), each))
    outputs = [each.get("name") for each in _children(table, "output")]
    if len(outputs) not in (1, 3) or (len(outputs) == 3 and tuple(outputs) != _OUTPUTS):
        raise FlowError("the table has one output (an activity), or kind, step and variable", table.sourceline)
    branches: list[Branch] = []
    orelse: Block = ()
    for rule in _children(table, "rule"):
        tests = ["".join(each.itertext()).strip() for each in _children(rule, "inputEntry")]
        values = [_output(each) for each in _children(rule, "outputEntry")]
        if len(tests) != len(paths) or len(values) != len(outputs) or orelse:
            reason = (
                "stands behind a rule that always fits" if orelse else "has another number of entries than the table"
            )
            raise FlowError(f"the rule {rule.get('id')} {reason}", rule.sourceline)
        step = _step(values, rule)
        parts = [_test(path, test, rule) for path, test in zip(paths, tests, strict=True) if test not in ("", "-")]
        if parts:
            branches.append(Branch(parts[0] if len(parts) == 1 else And(tuple(parts)), (step,)))
        else:
            orelse = (step,)
    if not branches:
        raise FlowError("the table has no rule with a condition", table.sourceline)
    return identified(Flow((If(tuple(branches), orelse),), title))


def _table(content: bytes) -> tuple[Any, str]:
    if len(content) > _LARGEST_BYTES:
        raise FlowError(f"the file has more than {_LARGEST_BYTES >> 20} MiB")
    try:
        root: Any = etree.fromstring(content, etree.XMLParser(**SAFE_XML))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FlowError(f"the XML is broken: {' '.join(str(error).split())}", getattr(error, "lineno", None)) from None
    decisions = [e for e in root.iter() if isinstance(e.tag, str) and etree.QName(e).localname == "decision"]
    tables = [table for decision in decisions for table in _children(decision, "decisionTable")]
    if len(tables) != 1:
        raise FlowError(f"the file has {len(tables)} decision tables; a flow is one", root.sourceline)
    policy = tables[0].get("hitPolicy", "UNIQUE")
    if policy not in ("FIRST", "UNIQUE"):
        raise FlowError(
            f"the hit policy {policy} takes several rules; a flow takes the first that fits", tables[0].sourceline
        )
    title = tables[0].getparent().get("name", "")
    return tables[0], "" if title == "Decision" else title


def _children(element: Any, name: str) -> list[Any]:
    return [e for e in element if isinstance(e.tag, str) and etree.QName(e).localname == name]


def _path(text: str, element: Any) -> Path:
    found = _read(text, element)
    if not isinstance(found, Path):
        raise FlowError(f"the input {text!r} is no variable", element.sourceline)
    return found


def _read(text: str, element: Any) -> Expression:
    try:
        return read_dialect(text, FEEL)
    except FlowError as error:
        raise FlowError(f"{element.get('id')}: {error}", element.sourceline) from None


def _test(path: Path, text: str, rule: Any) -> Comparison:
    operator: Comparator = "=="
    if text.startswith("not(") and text.endswith(")"):
        operator, text = "!=", text[4:-1]
    for known in _ORDERS:
        if text.startswith(known):
            operator, text = known, text.removeprefix(known)
            break
    value = _read(text.strip(), rule)
    if not isinstance(value, Literal):
        raise FlowError(f"the test {text!r} of {rule.get('id')} is no constant", rule.sourceline)
    return Comparison(path, operator, value)


def _output(entry: Any) -> str:
    text = "".join(entry.itertext()).strip()
    value = _read(text, entry) if text else None
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise FlowError(f"the result {text!r} is no text in quotes", entry.sourceline)
    return value.value


def _step(values: list[str], rule: Any) -> Call | UserTask:
    if len(values) == 1:
        return Call(values[0], "result")
    kind, told, variable = values
    if kind not in ("call", "user_task"):
        raise FlowError(f"the kind {kind!r} of {rule.get('id')} is neither call nor user_task", rule.sourceline)
    return Call(told, variable) if kind == "call" else UserTask(told, variable)


DMN = BuiltIn((".dmn",), frozenset((Feature.FREE_NAMES, Feature.TITLE)), read_dmn, write_dmn)
