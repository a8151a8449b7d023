#!/usr/bin/env python3
"""Shows the first plans of every shared log, of n8n, BPMN and an ugly export on one page.

The page has pictures, figures, and the results of checks on each.

    .venv/bin/python benchmarks/gallery.py DATA_DIR OUT_DIR [--bench DIR] [--scores DIR]
        [--only NAME ...] [--requests 3] [--cases 1500]
    [--show]

Each source is run end to end as a new user would, in a lake of its own: `opus init --yes` on the export, `opus
rebuild`, `opus generate` on a few requests, settings untouched. OUT_DIR/gallery.html shows the rank-1 workflow of every
request; OUT_DIR/gallery.json holds the same checks for programs. DIR of --bench has logplans.py and plans.py (default:
DATA_DIR/../bench). DIR of --scores has predictions, a folder a source as bench/logplans.py writes it (gold/), with
predictions.jsonl, steps.jsonl and events.json of benchmarks/logplans.py: their scores stand beside the source. --cases
keeps as many cases of a log: the page is for looking, its own numbers are of a few requests.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gallery_checks import Case, Check, Plan, checks, node_f1
from gallery_page import page
from gallery_scores import Scores, scored
from gallery_sources import Source, sources, write_intakes
from measuring import Family

from opus_pipelines.cli.main import opus as commands
from opus_pipelines.core.formatting import clean
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.graphs.swimlane_svg import swimlane_svg
from opus_pipelines.reporting.views import connect
from opus_pipelines.reporting.workflows import read_workflow


@dataclass
class Shown:
    """One request and its rank-1 workflow; `problem` where there is none."""

    request: str
    text: str
    head: dict[str, Any] = field(default_factory=dict)
    svg: str = ""
    checks: list[Check] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    done: tuple[str, ...] = ()
    expected: list[str] = field(default_factory=list)
    node_f1: float | None = None
    problem: str | None = None


@dataclass
class Ran:
    """What came of a source."""

    name: str
    shown: list[Shown] = field(default_factory=list)
    log: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    scores: Scores = field(default_factory=Scores)
    facts: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def run(source: Source, work: Path, shows_only: bool) -> Ran:
    """Makes history, intakes, lake and plans of one source below `work`.

    With `shows_only` the folder is read as it is; otherwise it is made again.
    """
    kept = work / "ran.json"
    if not shows_only:
        shutil.rmtree(work, ignore_errors=True)
        (work / "history").mkdir(parents=True)
        write_intakes(source, work / "intakes")
        lines: list[str] = []
        seconds: dict[str, float] = {}
        with Family() as family:
            for command, said, took in _carried_out(source, work):
                lines += said
                seconds[command] = took
            kept.write_text(
                json.dumps({"log": "\n".join(lines), "cpu_seconds": family.cpu_seconds, "seconds": seconds})
            )
    ran = Ran(source.name, **json.loads(kept.read_text()))
    try:
        _look(source, work, ran)
    except Exception as error:  # a source that failed is shown as failed, the others go on
        ran.log += f"\n{type(error).__name__}: {error}"
    if not ran.shown:
        ran.shown = [
            Shown(r.name, r.text, done=r.plan, problem="no plan: see the log of this source") for r in source.requests
        ]
    return ran


def _carried_out(source: Source, work: Path) -> Iterator[tuple[str, list[str], float]]:
    """Run the commands; yields of each its name, its last lines (more of one that failed) and its seconds."""
    if source.is_table and "init" in commands.commands:
        (work / "export").mkdir()
        files = [str(path) for path in source.write(work / "export")]
        yield _opus(work, "init", *files, "--to", f"history/{source.name}", "--yes")
    else:
        folder = work / "history" / source.name
        folder.mkdir()
        source.write(folder)
    yield _opus(work, "rebuild", "--history", "history")
    yield _opus(work, "generate", "--intakes", "intakes")


def _opus(work: Path, *arguments: str) -> tuple[str, list[str], float]:
    started = time.monotonic()
    done = _run(work, *arguments)
    lines = [clean(line) for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    kept = lines[-40 if arguments[0] == "init" or done.returncode else -4 :]
    return arguments[0], [f"$ opus {' '.join(arguments)}  (exit {done.returncode})", *kept], time.monotonic() - started


def _run(work: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "opus_pipelines.cli.main", "--lake", "lake", *arguments]
    return subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)


def _look(source: Source, work: Path, ran: Ran) -> None:
    connection = connect(Lake(work / "lake"))
    best = _run(work, "best", "--top", "1").stdout.splitlines()

    def rows(sql: str, *parameters: Any) -> list[dict[str, Any]]:
        found = connection.execute(sql, list(parameters))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    (ran.facts,) = rows(
        "SELECT (SELECT count(*) FROM wkg_cases) AS cases, (SELECT count(*) FROM wkg_tasks) AS tasks, "
        "(SELECT count(*) FROM wkg_cases WHERE success IS NOT NULL) AS cases_with_outcome"
    )
    kinds = {row["task_id"]: row["activity_kind"] for row in rows("SELECT task_id, activity_kind FROM wkg_tasks")}
    history = [Case.of(row) for row in rows("SELECT tasks, task_predecessors, success, p_ended FROM wkg_cases")]
    names: dict[str, list[str]] = {}
    for row in rows("SELECT task_id, task_key, title FROM wkg_task_aliases"):
        names.setdefault(row["task_id"], []).extend([row["task_key"], row["title"]])
    intakes = {row["folder"]: row for row in rows("SELECT * FROM generation_intakes")}
    for request in source.requests:
        shown = Shown(request.name, request.text, done=request.plan)
        ran.shown.append(shown)
        intake = intakes.get(request.folder, {})
        heads = rows(
            "SELECT * FROM workflows_optimized WHERE intake_id = ? AND rank = 1 ORDER BY intention_id",
            intake.get("intake_id"),
        )
        if not heads:
            shown.problem = (
                f"{intake.get('status') or 'not generated'}: {intake.get('reason') or 'see the log of this source'}"
            )
            continue
        shown.head = heads[0] | {"gain_basis": intake["gain_basis"]}
        workflow = shown.head["workflow_id"]
        near = rows(
            "SELECT c.tasks, c.task_predecessors, c.success, c.p_ended, n.similarity "
            "FROM generation_neighbours AS n JOIN wkg_cases AS c USING (implementation_id) "
            "WHERE n.intake_id = ? AND n.intention_id = ?",
            intake["intake_id"],
            shown.head["intention_id"],
        )
        plan = Plan(
            shown.head,
            rows("SELECT * FROM workflows_tasks WHERE workflow_id = ? ORDER BY position", workflow),
            rows("SELECT * FROM workflows_edges WHERE workflow_id = ?", workflow),
            rows("SELECT * FROM workflows_expected_flow WHERE workflow_id = ?", workflow),
            kinds,
            history,
            list(map(Case.of, near)),
            {
                "`opus best`": "\n".join(line for line in best if workflow in line),
                "`opus explain`": _run(work, "explain", workflow).stdout,
            },
        )
        shown.expected = [names[task][0] if names.get(task) else task for task in plan.expected]
        shown.svg = swimlane_svg(read_workflow(connection, workflow))
        shown.checks, shown.steps = checks(plan), list(plan.titles.values())
        shown.node_f1 = node_f1(plan, request.plan, lambda task: map(source.activity, names.get(task, [])))
    known = rows("SELECT DISTINCT unnest(map_keys(attributes)) AS name FROM wkg_cases")
    ran.note = _why_alike(source, ran, {row["name"] for row in known})


def _why_alike(source: Source, ran: Ran, attributes: set[str]) -> str:
    """Why all requests of a source have the same plan, where they do."""
    plans = {tuple(shown.steps) for shown in ran.shown if not shown.problem}
    if len(plans) != 1 or len(ran.shown) < 2:
        return ""
    asked = [request.attributes for request in source.requests]
    told = sorted(
        {name for one in asked for name in one if name in attributes and len({other.get(name) for other in asked}) > 1}
    )
    why = f"although they differ in {', '.join(told)}" if told else "and nothing that history knows tells them apart"
    return f"All {len(ran.shown)} requests have the same plan, {why}."


def main() -> None:
    """Run all and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--bench", type=Path)
    parser.add_argument("--scores", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--show", action="store_true", help="run nothing: make the page of what OUT_DIR has already")
    parser.add_argument("--requests", type=int, default=3, choices=range(1, 6))
    parser.add_argument("--cases", type=int, default=1_500)
    options = parser.parse_args()
    out: Path = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    bench = (options.bench or options.data / ".." / "bench").resolve()
    found: list[Ran] = []
    wanted = (lambda name: (out / "runs" / name / "ran.json").exists()) if options.show else lambda name: True
    for source in sources(
        options.data.resolve(),
        bench,
        out,
        options.requests,
        options.cases,
        lambda name: name in (options.only or [name]) and wanted(name),
    ):
        ran = run(source, out / "runs" / source.name, options.show)
        ran.scores = scored(options.scores / source.name, bench) if options.scores else Scores()
        found.append(ran)
        failed = sum(check.holds is False for shown in ran.shown for check in shown.checks)
        plans = f"{sum(not shown.problem for shown in ran.shown)} of {len(ran.shown)} requests have a plan"
        took = ", ".join(f"{command} {seconds:.0f} s" for command, seconds in ran.seconds.items())
        print(f"{ran.name}: {plans}, {failed} checks fail; {took} ({ran.cpu_seconds:.0f} s of CPU)", flush=True)
        (out / "gallery.html").write_text(page(found), "utf-8")
        (out / "gallery.json").write_text(
            json.dumps([_plain(ran) for ran in found], indent=1, ensure_ascii=False, default=str), "utf-8"
        )
    if not found:
        sys.exit(f"nothing to show in {options.data}")
    print(out / "gallery.html")


def _plain(ran: Ran) -> dict[str, Any]:
    return {
        "name": ran.name,
        "facts": ran.facts,
        "seconds": ran.seconds,
        "cpu_seconds": ran.cpu_seconds,
        "note": ran.note,
        "scores": [asdict(score) for score in ran.scores.rows],
        "shown": [
            {
                "request": s.request,
                "problem": s.problem,
                "steps": s.steps,
                "expected": s.expected,
                "done": s.done,
                "node_f1": s.node_f1,
                "verdict": s.head.get("verdict"),
                "checks": [asdict(check) for check in s.checks],
            }
            for s in ran.shown
        ],
    }


if __name__ == "__main__":
    main()
