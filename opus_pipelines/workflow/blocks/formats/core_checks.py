"""The checks of a CoRE program as a whole: names, branches, dead ends, steps that nothing reaches, and an end."""

from collections import Counter
from collections.abc import Iterable, Mapping

from opus_pipelines.workflow.blocks.formats.core_text import NEXT, CoreProgram, CoreStep, Finding


def findings(program: CoreProgram) -> list[Finding]:
    """Returns every error of the program in the order of its lines; an empty list for a program that can be run."""
    if not program.steps:
        return [Finding("empty", "the program has no step; a step is a line with ':::'", 1)]
    steps = program.by_key()
    found = [*_names(program.steps), *(one for step in program.steps for one in _branches(step, steps))]
    if not any(step.kind == "terminal" for step in program.steps):
        found.append(Finding("no_terminal", "the program has no terminal step, so that no run can end", 1))
    ahead = {key: [t for t in step.targets if t in steps] for key, step in steps.items()}
    reached = _reachable([program.steps[0].key], ahead)
    ending = _reachable([key for key, step in steps.items() if step.kind == "terminal"], _reversed(ahead))
    for key, step in steps.items():
        if key not in reached:
            found.append(Finding("unreachable", f"no way leads to step {step.name!r}", step.line))
        elif key not in ending and step.branches:
            found.append(Finding("no_end", f"no way leads from step {step.name!r} to a terminal step", step.line))
    return sorted(found, key=lambda one: (one.line, one.column, one.code))


def is_valid(program: CoreProgram) -> bool:
    """Returns whether the program has no error."""
    return not findings(program)


def _names(steps: Iterable[CoreStep]) -> list[Finding]:
    counts = Counter(step.key for step in steps)
    seen: set[str] = set()
    found = []
    for step in steps:
        if counts[step.key] > 1 and step.key in seen:
            found.append(Finding("duplicate", f"a step before it has the name {step.name!r}, too", step.line))
        seen.add(step.key)
    return found


def _branches(step: CoreStep, steps: Mapping[str, CoreStep]) -> list[Finding]:
    found = []
    keys = [key.lower() for key, _ in step.branches]

    def add(code: str, message: str) -> None:
        found.append(Finding(code, f"{step.kind} step {step.name!r} {message}", step.line))

    if step.kind == "terminal" and keys:
        add("terminal_branch", "has a branch; a terminal step ends the run")
    elif step.kind != "terminal" and not keys:
        add("dead_end", "has no branch, so that a run stops there without an end")
    elif step.kind == "process" and keys != [NEXT]:
        add("process_branch", f"needs one branch with the key {NEXT!r}, and has {', '.join(map(repr, keys))}")
    elif step.kind == "decision" and len(keys) < 2:
        add("decision_branch", "has one branch; a decision needs two or more")
    for key, count in Counter(keys).items():
        if count > 1:
            add("duplicate_key", f"has the key {key!r} {count} times")
    for _, target in step.branches:
        if target.lower() not in steps:
            add("target", f"leads to {target!r}, which is no step")
    return found


def _reachable(begin: Iterable[str], ahead: Mapping[str, list[str]]) -> set[str]:
    seen = set(begin)
    stack = list(seen)
    while stack:
        for target in ahead.get(stack.pop(), ()):
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return seen


def _reversed(ahead: Mapping[str, list[str]]) -> dict[str, list[str]]:
    back: dict[str, list[str]] = {}
    for key, targets in ahead.items():
        for target in targets:
            back.setdefault(target, []).append(key)
    return back
