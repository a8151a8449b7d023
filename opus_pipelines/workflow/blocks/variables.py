"""Names for the results of calls where a file has none: from the activity, and from what conditions and loops read.

The gold BPMN of Flow-Bench stores no variables. A name is the last word of the activity, in the plural where it
retrieves; a name that a later condition or loop reads is preferred.
"""

import re
from dataclasses import replace

from opus_pipelines.workflow.blocks.expressions import paths
from opus_pipelines.workflow.blocks.model import Call, Flow, For, Statement, UserTask
from opus_pipelines.workflow.blocks.traversal import bound_variables, expressions, map_statements, walk

UNKNOWN = "unknown_variable_"
_FALLBACK = "result"


def with_invented_variables(flow: Flow) -> Flow:
    """Returns the flow with a name for every variable that is called `UNKNOWN`; the same flow gives the same names."""
    open_steps = [s for s in walk(flow.body) if isinstance(s, Call | UserTask) and s.variable == UNKNOWN]
    if not open_steps:
        return flow
    taken = {name for name in bound_variables(flow) if name != UNKNOWN}
    wanted = _wanted(flow) - taken
    found: dict[str, str] = {}
    for step in open_steps:
        words = _words(step)
        name = next((word for word in words if word in wanted), None)
        if name is not None:
            wanted.discard(name)
        else:
            name = words[0]
            number = 2
            while name in taken or name in wanted:
                name, number = f"{words[0]}_{number}", number + 1
        found[step.id] = name
        taken.add(name)
    found |= _left_over(flow, wanted, found)

    def change(statement: Statement) -> Statement:
        if isinstance(statement, Call | UserTask) and statement.id in found:
            return replace(statement, variable=found[statement.id])
        return statement

    return replace(flow, body=map_statements(flow.body, change))


def _wanted(flow: Flow) -> set[str]:
    """The variables that conditions and loops read."""
    return {path.parts[0] for s in walk(flow.body) for e in expressions(s) for path in paths(e)}


def _left_over(flow: Flow, wanted: set[str], found: dict[str, str]) -> dict[str, str]:
    """Gives a variable that is read and that nothing sets to the last retrieving call before it that nothing reads."""
    read = _wanted(flow)
    result: dict[str, str] = {}
    before: list[Call] = []
    for statement in walk(flow.body):
        for expression in expressions(statement):
            for path in paths(expression):
                name = path.parts[0]
                free = [c for c in before if found.get(c.id) not in read and c.id not in result]
                if name in wanted and free:
                    result[free[-1].id] = name
                    wanted.discard(name)
        if isinstance(statement, Call) and statement.id in found:
            before.append(statement)
        if isinstance(statement, For):
            wanted.discard(statement.variable)
    return result


def _words(step: Call | UserTask) -> list[str]:
    """Returns possible names, the best first: plural before singular where the activity retrieves."""
    if isinstance(step, UserTask):
        return ["task"]
    operation = step.activity.rpartition("__")[2]
    last = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", re.split("[_.]", operation)[-1] or step.activity)
    words = [word.lower() for word in last if word.isascii()] or [_FALLBACK]
    if words[0].isdigit():
        words.insert(0, _FALLBACK)
    single = "_".join([*words[:-1], _singular(words[-1])])
    several = "_".join([*words[:-1], _plural(_singular(words[-1]))])
    first, second = (several, single) if operation.startswith("retrieve") else (single, several)
    app = step.activity.partition("_")[0].lower()
    return [first, second, *({_singular(words[-1]), _plural(words[-1])} if len(words) > 1 else ()), f"{app}_{single}"]


def _plural(word: str) -> str:
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search("(s|x|z|ch|sh)$", word) else "s")


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if re.search("[^s]s$", word) and len(word) > 3 else word
