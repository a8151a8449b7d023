#!/usr/bin/env python3
"""Write workflow graphs for WorFBench's tasks with the real pipeline, in a lake of its own.

    .venv/bin/python benchmarks/worfbench.py HISTORY.json INTAKES.json PREDICTIONS.json [--work DIR]

HISTORY and INTAKES are lists of records as the data set has them: {"source", "id", "conversations": [system, user,
assistant]}; the assistant's answer of an intake, where there is one, is not read. The tasks of each source are an
industry; a task's text is the request, and the tools or actions that it may use are the process context. A prediction
is the intake's record with the rank-1 workflow as the assistant's answer, in the form that the data set's own program
reads ("Node:" with numbered subtasks, "Edges:" with START and END), and the same as "nodes" and "edges". The order is
that of the intakes; an intake without a workflow has no nodes.
"""

import argparse
import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

from logplans import NOTHING, predict  # type: ignore[import-not-found]  # beside this file
from two_jobs import KEPT, rebuild_and_generate, to_write, workplace  # type: ignore[import-not-found]

from opus_pipelines.lake.layout import slug

SOURCE = """\
format = "jsonl"
industry = { column = "source" }

[record]
case = "id"
description = "text"
process_context = "context"
tasks = "steps"

[task]
activity = "subtask"
predecessors = "predecessors"
"""
LIST = re.compile(
    r"The (?:action|api|tool) list you can (?:take|use|select from):|api_list:|"
    r"The database tables and corresponding fields you can operate are:"
)
ASKED = re.compile(r"Your task is to:|My problem is:|^Task:", re.MULTILINE)  # what stands before describes the place
_NODE = re.compile(r"^\s*(\d+)\s*[:.]\s*(.+?)\s*$", re.MULTILINE)
_EDGE = re.compile(r"\(\s*(START|\d+)\s*,\s*(END|\d+)\s*\)")
_EDGES = re.compile(r"^\s*Edges?\s*:", re.MULTILINE)


def main() -> int:
    """Write the inputs, run both jobs, write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("intakes", type=Path)
    parser.add_argument("predictions", type=to_write)
    parser.add_argument("--work", type=Path, help=KEPT)
    arguments = parser.parse_args()
    history, intakes = (json.loads(path.read_text()) for path in (arguments.history, arguments.intakes))
    with workplace(arguments.work, "worfbench") as work:
        folders = write_inputs(history, intakes, work)
        rebuild_and_generate(work, [])
        whole, _ = predict(work)
        answers = [answered(row, whole.get(name, NOTHING)) for name, row in zip(folders, intakes, strict=True)]
    arguments.predictions.write_text(json.dumps(answers, ensure_ascii=False, indent=1))
    written = sum(bool(answer["nodes"]) for answer in answers)
    print(f"{written} of {len(intakes)} predicted, in {arguments.predictions}", file=sys.stderr)
    return 0


def write_inputs(history: list[dict[str, Any]], intakes: list[dict[str, Any]], work: Path) -> list[str]:
    """History source and intake folders below `work`; returns the name of every intake folder."""
    source = work / "history" / "worfbench"
    source.mkdir(parents=True, exist_ok=True)
    with (source / "tasks.jsonl").open("w") as file:
        for number, row in enumerate(history):
            file.write(json.dumps(record(row, number), ensure_ascii=False) + "\n")
    (source / "source.toml").write_text(SOURCE)
    folders = []
    for number, row in enumerate(intakes):
        contract = work / "intakes" / "client" / slug(row["source"])
        folder = contract / f"task{number:06d}"
        for role, text in zip(("input", "process"), asked(row), strict=True):
            if text:
                (folder / role).mkdir(parents=True, exist_ok=True)
                (folder / role / f"{role}.txt").write_text(text)
        (contract / "contract.toml").write_text(f"industry = {json.dumps(row['source'])}\n")
        folders.append(folder.name)
    return folders


def record(row: dict[str, Any], number: int) -> dict[str, Any]:
    """A solved task as a case: each subtask once, with the places of its predecessors."""
    nodes, edges = workflow_of(row["conversations"][2]["content"])
    text, context = asked(row)
    place = {task: n for n, task in enumerate(dict.fromkeys(nodes.values()))}
    before: dict[str, set[int]] = {task: set() for task in place}
    for a, b in edges:
        if a in nodes and b in nodes and nodes[a] != nodes[b]:
            before[nodes[b]].add(place[nodes[a]])
    steps = [{"subtask": task, "predecessors": sorted(before[task])} for task in place]
    return {"id": f"case{number:06d}", "source": row["source"], "text": text, "context": context, "steps": steps}


def workflow_of(answer: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The subtasks by number, and the edges, of an answer."""
    head, *tail = _EDGES.split(answer, maxsplit=1)
    return {m[1]: m[2] for m in _NODE.finditer(head)}, [(m[1], m[2]) for m in _EDGE.finditer("".join(tail))]


def asked(row: dict[str, Any]) -> tuple[str, str]:
    """The request, and what is said beside it: a description of the place, and the list of tools or actions."""
    text = row["conversations"][1]["content"].replace("Now it's your turn.", "")
    task, *listed = LIST.split(text, maxsplit=1)
    place, *request = ASKED.split(task, maxsplit=1)
    if not request:
        place, request = "", [task]
    beside = [place.strip(), *(f"- {line}" for line in lines_of("".join(listed).strip()))]
    return re.sub(r"\s*Output:\s*$", "", request[0].strip()), "\n".join(line for line in beside if line)


def lines_of(listed: str) -> list[str]:
    """The entries of a list of tools or actions, one a line."""
    try:
        entries = ast.literal_eval(listed)
    except (ValueError, SyntaxError):  # a list in words, or one that was cut off
        named = re.findall(r"'(?:api_)?name': '([^']+)', '(?:api_)?description': ['\"](.*?)['\"], '", listed)
        return [f"{name}: {text}" for name, text in named] or [x.strip() for x in listed.splitlines() if x.strip()]
    if isinstance(entries, dict):
        entries = [f"{name}: {x if isinstance(x, str) else ', '.join(x)}" for name, x in entries.items()]
    return list(dict.fromkeys(" ".join(entry_text(entry).split()) for entry in entries))


def entry_text(entry: Any) -> str:
    """A tool with its description, or an action."""
    if not isinstance(entry, dict):
        return str(entry)
    name, text = (entry.get(key) or entry.get(f"api_{key}") or "" for key in ("name", "description"))
    return f"{name}: {text}"


def answered(row: dict[str, Any], prediction: dict[str, Any]) -> dict[str, Any]:
    """The intake's record with the workflow as the answer; tasks without a link follow START and lead to END."""
    nodes: list[str] = prediction["plan"]
    number = {task: n for n, task in enumerate(nodes, 1)}
    links = sorted({(number[a], number[b]) for a, b in prediction["links"] if a in number and b in number})
    starts = [(0, n) for n in number.values() if all(b != n for _, b in links)]
    ends = [(n, len(nodes) + 1) for n in number.values() if all(a != n for a, _ in links)]
    edges = [*starts, *links, *ends] if nodes else []
    names = {0: "START", len(nodes) + 1: "END"}
    body = "\n".join(f"{n}: {task}" for task, n in number.items())
    drawn = " ".join(f"({names.get(a, a)},{names.get(b, b)})" for a, b in edges)
    answer = {"role": "assistant", "content": f"Node:\n{body}\nEdges: {drawn}"}
    return {**row, "conversations": [*row["conversations"][:2], answer], "nodes": nodes, "edges": edges}


if __name__ == "__main__":
    sys.exit(main())
