#!/usr/bin/env python3
"""Golden files: proves that a change of the code does not change what comes out of the product.

    scripts/golden.py lakes --code BEFORE                   make the inputs, and lakes by the code of a checkout BEFORE
    scripts/golden.py write base --code BEFORE [--parts a,b]  run the parts with its .venv, into build/golden/base/PART/
    scripts/golden.py check --code . [--parts a,b]          run the parts with this checkout, and compare with the base
    scripts/golden.py compare NAME OTHER [--parts a,b]      compare two written folders
    scripts/golden.py list                                  what each part covers

It is the wider neighbour of same_rows.py. Real data is read from ../shared/data, or from the folder in OPUS_TEST_DATA.
BEFORE is a checkout with an install of its own:

    git worktree add ../before COMMIT && make -C ../before .venv/.installed

`check` prints one line for each part, the files that differ and their first differing lines; exit 1 where anything
differs. Its files stay in build/golden/scratch/TREE/PART for a look.
Parts `forecast`, `training`, `reports`, `exports` read copies of the base's lakes, so that they are quick and tell
apart who changed what; `sample` and `rebuild_log` make their own (kept by the state of the tree's code).
Left out: clocks, run ids, code versions, settings hashes, ids that contain them, seconds, processor figures.
"""

import argparse
import contextlib
import difflib
import fcntl
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from left_out import NOT_DATASETS, is_compared

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "golden"
DATA = Path(os.environ.get("OPUS_TEST_DATA", ROOT.parent / "shared" / "data")).resolve()
INPUTS = HOME / "inputs"


class Run:
    """One tree, and the folder that a part writes into."""

    def __init__(self, code: Path, out: Path, work: Path) -> None:
        self.code, self.out, self.work = code, out, work
        self.python = code / ".venv" / "bin" / "python"
        self.opus = code / ".venv" / "bin" / "opus"

    def environment(self) -> dict[str, str]:
        own = {
            k: v for k, v in os.environ.items() if not k.startswith("OPUS_") and k not in ("PYTHONPATH", "VIRTUAL_ENV")
        }
        java = subprocess.run([self.code / "scripts" / "find_java.sh"], capture_output=True, text=True).stdout.strip()
        return own | {
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "TZ": "UTC",
            "JAVA_HOME": java,
            "COLUMNS": "400",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONHASHSEED": "0",
            "CUDA_VISIBLE_DEVICES": "",
        }

    def call(self, command: Iterable[Any], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command; ends with its output where it fails."""
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=cwd or self.work, env=self.environment(), capture_output=True, text=True)
        if done.returncode:
            said = f"{done.stdout[-800:]}\n{done.stderr[-2500:]}"
            raise SystemExit(f"golden: exit {done.returncode}: {' '.join(words)}\n{said}")
        return done

    def many(self, commands: list[tuple[str, list]]) -> None:
        """Runs commands of `opus` in one process of the tree; each one's exit code, stdout and errors become a file."""
        spec = self.work / "many.json"
        spec.write_text(json.dumps([[name, [str(a) for a in argv]] for name, argv in commands]))
        self.call([self.python, Path(__file__).resolve(), "_many", spec, self.out])

    def views(self, lake: Path, wanted: str = "", folder: str = "views") -> None:
        """Writes the datasets of a lake whose names begin with one of the words `wanted`."""
        self.call([self.python, Path(__file__).resolve(), "_views", lake, self.out / folder, wanted])

    def write(self, name: str, text: str) -> None:
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def copied(self, lake: Path) -> Path:
        to = self.work / "lake"
        shutil.copytree(lake, to, symlinks=True)
        return to


# --- lakes


def code_key(code: Path) -> str:
    git = ["git", "-C", str(code)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    places = [
        p for p in ("opus_pipelines", "assets", "jobs", "resources", "sql", "pyproject.toml") if (code / p).exists()
    ]
    diff = subprocess.run([*git, "diff", "HEAD", "--", *places], capture_output=True).stdout
    new = subprocess.run(
        [*git, "ls-files", "-o", "--exclude-standard", "--", *places], capture_output=True, text=True
    ).stdout
    content = b"".join((code / f).read_bytes() for f in new.split("\n") if f and (code / f).is_file())
    return hashlib.sha256(head.encode() + diff + new.encode() + content).hexdigest()[:12]


def lake_of(run: Run, kind: str, make: Callable[[Run, Path], None], fresh: bool = False) -> Path:
    """The folder with a tree's lake of a kind, made once for each state of its code."""
    name = f"{run.code.name}-{kind}-"
    root = HOME / "lakes"
    root.mkdir(exist_ok=True)
    with (root / f".lock-{name}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = root / (name + code_key(run.code))
        if folder.exists() and not fresh:
            return folder
        for old in root.glob(name + "*"):
            shutil.rmtree(old, ignore_errors=True)
        making = root / (name + "making")
        making.mkdir()
        make(run, making)
        making.rename(folder)
        return folder


def make_sample(run: Run, folder: Path) -> None:
    run.call([run.opus, "sample", "sample"], folder)
    opus = [run.opus, "--lake", "lake"]
    run.call([*opus, "rebuild", "--history", "sample/history"], folder)
    run.call([*opus, "generate", "--intakes", "sample/intakes"], folder)


def make_logs(run: Run, folder: Path) -> None:
    shutil.copytree(INPUTS / "logs", folder / "history")
    run.call([run.opus, "--lake", "lake", "rebuild", "--history", "history"], folder)


def base_lake(kind: str) -> Path:
    """The lake that the base's code made; `write base` puts it there."""
    folder = HOME / "base_lakes" / kind
    if not folder.exists():
        raise SystemExit(f"golden: {folder} is missing: run `golden.py lakes --code BEFORE` first")
    return folder


# --- parts


def flow_bench(run: Run) -> None:
    """The 42 Flow-Bench tests: five folds, predictions and BPMN of each, scores; some `opus flow new`."""
    folder = DATA / "flow_bench"
    for name, more in (("folds", ()),):
        lines = run.work / f"{name}.jsonl"
        run.call([run.python, "benchmarks/flow_bench.py", "folds", folder, lines, *more], run.code)
        for line in lines.read_text("utf-8").splitlines():
            value = json.loads(line)
            bpmn = value.pop("bpmn")
            run.write(
                f"{name}/{value['uid']}.txt",
                json.dumps(value, indent=1, ensure_ascii=False) + "\n" + value["sequence"] + "\n" + bpmn,
            )
        scored = run.call([run.python, "benchmarks/flow_bench.py", "score", folder, lines], run.code)
        run.write(f"{name}/scores.txt", scored.stdout)


def utterances(run: Run) -> None:
    """The project's own 280 utterances over Flow-Bench's catalogue: scores by part and tag, which errors."""
    done = run.call([run.python, "-m", "benchmarks.flow_utterances", DATA / "flow_bench", "--show"], run.code)
    run.write("scores.txt", re.sub(r"[\d.]+ CPU s a flow", "CPU s a flow", done.stdout))


def requirements(run: Run) -> None:
    """204 requirements of the invented enterprise with the flows of four writers; outlines, validation, scores."""
    for model in ("composer", "catalogue", "nearest", "frequent"):
        samples = run.work / f"{model}.jsonl"
        run.call([run.opus, "flow", "compare", "--model", model, "--samples", samples])
        for line in samples.read_text("utf-8").splitlines():
            value = json.loads(line)
            value.pop("seconds", None)
            run.write(f"{model}/{value['id']}.json", json.dumps(value, indent=1, ensure_ascii=False))
    asked = [json.loads(line)["request"] for line in (run.work / "composer.jsonl").read_text("utf-8").splitlines()]
    golds = [json.loads(line)["gold"] for line in (run.work / "composer.jsonl").read_text("utf-8").splitlines()]
    commands: list[tuple[str, list]] = []
    for n in range(0, len(asked), 17):
        gold = run.work / f"gold{n}.json"
        gold.write_text(json.dumps(golds[n]))
        other = run.work / f"gold{n - 17 if n else 0}.json"
        commands += [
            (f"outlines/{n}.txt", ["flow", "outline", asked[n]]),
            (f"outlines/{n}.json", ["flow", "outline", asked[n], "--json"]),
            (f"validate/{n}.txt", ["flow", "validate", gold]),
            (f"score/{n}.txt", ["flow", "score", gold, other]),
        ]
    run.many(commands)


PROGRAMS = {
    "noisy": """Step 1 ::: decision ::: call found = mentions(task=task, phrase="noisy") ::: Yes :: Use :: No :: Step 2
Use ::: process ::: call plan = add_model(plan=plan, model="image_denoising") ::: next :: Step 2
Step 2 ::: process ::: call plan = add_model(plan=plan, model="image_captioning") ::: next :: End
End ::: terminal ::: Give the plan. :::
""",
    "german": """Step 1 ::: decision ::: call found = mentions(task=task, phrase="German") ::: Yes :: Caption :: No :: Grey
Caption ::: process ::: call plan = add_model(plan=plan, model="image_captioning") ::: next :: Translate
Translate ::: process ::: call plan = add_model(plan=plan, model="translation") ::: next :: End
Grey ::: process ::: call plan = add_model(plan=plan, model="colorization") ::: next :: End
End ::: terminal ::: Give the plan. :::
""",
    "loop": """Step 1 ::: decision ::: call found = mentions(task=task, phrase="blurry") ::: Yes :: Use :: No :: End
Use ::: process ::: call plan = add_model(plan=plan, model="image_deblurring") ::: next :: Step 1
End ::: terminal ::: Give the plan. :::
""",
    "words": """Step 1 ::: process ::: Find out what kind of picture it is. ::: next :: Step 2
Step 2 ::: decision ::: Is the picture grey? ::: Yes :: Colour :: No :: End
Colour ::: process ::: call plan = add_model(plan=plan, model="colorization") ::: next :: End
End ::: terminal ::: Give the plan. :::
""",
    "faulty": """Step 1 ::: process ::: call plan = no_such_tool(plan=plan) ::: next :: Step 3
Step 2 ::: process ::: call plan = add_model(plan=plan, model="x") ::: next :: End
End ::: terminal ::: Give the plan. :::
""",
}
TASKS = (
    "Given a noisy image, how to return the caption in German step by step?",
    "Given a blurry grayscale image, how to return the regular image?",
    "Given a text in English, how to return the summary in German?",
)


def programs(run: Run) -> None:
    """Ten workflow programs on three tasks each, their rows and history; three searches for a better program."""
    commands: list[tuple[str, list]] = []
    tasks = [x for task in TASKS for x in ("--task", task)]
    lake = ["--lake", run.work / "lake"]
    for name, text in PROGRAMS.items():
        (run.work / f"{name}.core").write_text(text)
        commands.append(
            (
                f"run/{name}.txt",
                [
                    *lake,
                    "program",
                    "run",
                    run.work / f"{name}.core",
                    *tasks,
                    "--max-rounds",
                    12,
                    "--history",
                    run.out / "history" / name,
                ],
            )
        )
        commands.append((f"python/{name}.txt", ["flow", "convert", run.work / f"{name}.core", "--to", "python"]))
        commands.append(
            (
                f"similar/{name}.txt",
                [*lake, "program", "run", run.work / f"{name}.core", *tasks, "--max-rounds", 12, "--reads", "similar"],
            )
        )
    for uid in ("1", "2", "4", "6", "23"):
        file = DATA / "flow_bench" / "output" / f"uid_{uid}_output.bpmn"
        commands.append((f"core/{uid}.txt", ["flow", "convert", file, "--to", "core"]))
        commands.append((f"run/uid_{uid}.txt", [*lake, "program", "run", file, *tasks, "--max-rounds", 12]))
    commands.append(
        (
            "improve/noisy.txt",
            [
                *lake,
                "program",
                "improve",
                run.work / "noisy.core",
                "--calls",
                60,
                "--seeds",
                1,
                "-o",
                run.out / "improve" / "noisy.core",
            ],
        )
    )
    commands.append(
        (
            "improve/random.txt",
            [
                *lake,
                "program",
                "improve",
                "--method",
                "random programs",
                "--calls",
                30,
                "--seeds",
                1,
                "--interpreter",
                "similar",
                "--most-tasks",
                20,
            ],
        )
    )
    commands += [(f"query/{name}.txt", [*lake, "query", name]) for name in ("program_steps", "programs")]
    (run.out / "improve").mkdir(parents=True, exist_ok=True)
    run.many(commands)
    names = ("programs_runs", "programs_steps", "programs_searches", "programs_curves")
    run.many([(f"rows/{name}.txt", [*lake, "query", f"FROM {name}", "--format", "json"]) for name in names])
    for name in names:  # such a lake has no views.sql of its own
        path = run.out / "rows" / f"{name}.txt"
        rows = json.loads(path.read_text("utf-8").split("--- stdout\n", 1)[1].split("--- stderr\n")[0])
        texts = [json.dumps({k: v for k, v in row.items() if is_compared(name, k)}, sort_keys=True) for row in rows]
        path.write_text("\n".join(sorted(masked(t) for t in texts)) + "\n", "utf-8")


def rebuild_log(run: Run, fresh: bool = False) -> None:
    """One `opus rebuild` of two real logs (receipt_wabo, XES; 400 cases of traffic fines, CSV), all published rows."""
    lake = lake_of(run, "logs", make_logs, fresh) / "lake"
    run.views(lake)
    fines = INPUTS / "logs" / "fines" / "fines.csv"
    run.many(
        [
            ("check.txt", ["--lake", lake, "check", INPUTS / "logs" / "fines"]),
            ("discover.txt", ["discover", fines]),
            ("tasks.txt", ["--lake", lake, "tasks"]),
            ("graph.svg", ["--lake", lake, "graph", "-o", "-"]),
            ("init.txt", ["init", fines, "--to", run.work / "claims", "--yes"]),
        ]
    )
    shutil.copytree(run.work / "claims", run.out / "init", ignore=shutil.ignore_patterns("*.csv"))


def forecast(run: Run) -> None:
    """`opus forecast` of running cases of a real log, as an export and as open cases of history: figures and rows."""
    logs = base_lake("logs")
    lake = run.copied(logs / "lake")
    history = ["--history", INPUTS / "logs"]
    run.many(
        [
            (
                "fines.txt",
                [
                    "--lake",
                    lake,
                    "forecast",
                    INPUTS / "running.csv",
                    "--source",
                    "fines",
                    *history,
                    "--limit-hours",
                    2000,
                    "--limit-steps",
                    6,
                    "--show",
                    100,
                ],
            )
        ]
    )
    run.views(lake, "forecasts", "fines")
    run.many(
        [
            ("receipt.txt", ["--lake", lake, "forecast", "--source", "receipt", *history, "--show", 100]),
            ("query.txt", ["--lake", lake, "query", "forecasts"]),
            ("limits.txt", ["--lake", lake, "query", "forecast_limits"]),
        ]
    )
    run.views(lake, "forecasts", "receipt")


def training(run: Run) -> None:
    """One `opus train` on a small history (one source of the sample): figures, model files, registered models."""
    lake = run.copied(base_lake("small") / "lake")
    (run.work / "opus.toml").write_text("[lwm]\nperceptrons = 1\n")
    done = run.call([run.opus, "--lake", lake, "train", "--no-fine-tune"], run.work)
    run.write("train.txt", done.stdout)
    run.write(
        "progress.txt",
        "\n".join(
            line
            for line in re.sub(r"(?m)^ *[\d.]+ s +", "", done.stderr).splitlines()
            if not re.search(r" s\b|second|took|a minute", line)
        ),
    )
    run.many(
        [("models.txt", ["--lake", lake, "models"]), ("models.json", ["--lake", lake, "models", "--format", "json"])]
    )
    listing = []
    for path in sorted((lake / "mlflow").rglob("*")) if (lake / "mlflow").is_dir() else []:
        inner = re.sub(r"[0-9a-f]{32}", "<id>", str(path.relative_to(lake)))
        if path.is_file() and path.suffix in (".safetensors", ".npz", ".npy", ".pt", ".bin", ".pth"):
            listing.append(f"{inner} {hashlib.sha256(path.read_bytes()).hexdigest()}")
    run.write("weights.txt", "\n".join(sorted(listing)))


def reports(run: Run) -> None:
    """`opus report`, `opus graph` and other pages: HTML and SVG of the sample's lake."""
    lake = ["--lake", run.copied(base_lake("sample") / "lake")]
    run.many(
        [
            ("report.txt", [*lake, "report", "--out", run.out / "pages"]),
            ("graph.svg", [*lake, "graph", "-o", "-"]),
            ("around.svg", [*lake, "graph", "--around", "Register Claim", "--hops", 2, "-o", "-"]),
        ]
    )
    nights = run.out / "pages" / "nights.html"
    if nights.exists():  # its figures are clocks
        nights.write_text(re.sub(r"[-\d.,]*\d[\d.,]*", "#", nights.read_text("utf-8")), "utf-8")


FORMATS = ("python", "core", "bpmn", "camunda", "json", "yaml", "servicenow", "mermaid", "n8n", "dmn")


def exports(run: Run) -> None:
    """`opus export` of workflows in every format, their `opus score`; `opus flow` convert, diff, page, check, edit."""
    lake = ["--lake", run.copied(base_lake("sample") / "lake")]
    commands: list[tuple[str, list]] = []
    for workflow in json.loads((INPUTS / "workflows.json").read_text()):
        for form in ("bpmn", "mermaid", "json", "yaml"):
            commands.append((f"export/{workflow}.{form}", [*lake, "export", workflow, "--to", form]))
        commands.append(
            (f"export/{workflow}.out.txt", [*lake, "export", workflow, "--out", run.work / f"{workflow}.yaml"])
        )
        commands.append((f"export/{workflow}.score.txt", ["score", run.work / f"{workflow}.yaml"]))
        commands.append((f"explain/{workflow}.txt", [*lake, "explain", workflow]))
    folder = DATA / "flow_bench"
    files = sorted((folder / "output").glob("*.bpmn"))
    for file in files[::3]:
        for form in FORMATS:
            commands.append((f"convert/{file.stem}.{form}", ["flow", "convert", file, "--to", form]))
        commands.append(
            (
                f"convert/{file.stem}.file.txt",
                ["flow", "convert", file, "--to", "python", "-o", run.work / f"{file.stem}.py"],
            )
        )
        for form in FORMATS:
            commands.append(
                (f"again/{file.stem}.{form}", ["flow", "convert", run.work / f"{file.stem}.py", "--to", form])
            )
        commands.append((f"check/{file.stem}.txt", ["flow", "check", file]))
        commands.append((f"page/{file.stem}.txt", ["flow", "page", file, "-o", run.out / "page" / f"{file.stem}.html"]))
    for before in sorted((folder / "context").glob("*.bpmn")):
        after = folder / "output" / before.name.replace("context", "output")
        operations, name = run.work / f"{before.stem}.json", before.stem
        commands.append((f"diff/{name}.txt", ["flow", "diff", before, after]))
        commands.append((f"diff/{name}.json", ["flow", "diff", before, after, "--json"]))
        commands.append(
            (f"diff/{name}.svg.txt", ["flow", "diff", before, after, "--svg", run.out / "diff" / f"{name}.svg"])
        )
        commands.append(
            (
                f"page/{name}.txt",
                [
                    "flow",
                    "page",
                    after,
                    "--prior",
                    before,
                    "--utterance",
                    "Change it.",
                    "-o",
                    run.out / "page" / f"{name}.html",
                ],
            )
        )
    for place, form in (("n8n", ["--from", "n8n"]), ("bpmn", [])):
        for file in sorted((INPUTS / place).iterdir()):
            for to in ("python", "mermaid", "bpmn", "json"):
                commands.append((f"{place}/{file.stem}.{to}", ["flow", "convert", file, *form, "--to", to]))
    commands.append(("formats.txt", ["flow", "formats"]))
    for name in ("page", "diff"):
        (run.out / name).mkdir(parents=True, exist_ok=True)
    run.many(commands)
    edits = []
    for before in sorted((folder / "context").glob("*.bpmn"))[:6]:
        text = (run.out / "diff" / f"{before.stem}.json").read_text("utf-8")
        operations = run.work / f"{before.stem}.json"
        operations.write_text(text.split("--- stdout\n", 1)[1].split("--- stderr\n")[0], "utf-8")
        edits.append((f"edit/{before.stem}.bpmn", ["flow", "edit", before, "--operations", operations]))
    run.many(edits)


QUERIES = (
    "audit_figures",
    "best_workflows",
    "cases_behind",
    "cost_by_task",
    "evidence",
    "history_sources",
    "left_out",
    "needed_tasks",
    "origins",
    "orphans",
    "ranking",
    "refused_intakes",
    "rejects_by_reason",
    "rules_in_force",
    "rules_not_applied",
    "saving_against_history",
    "strongest_edges",
    "tasks_of_workflow",
    "undecided",
    "ways_of_task",
)


def sample(run: Run, fresh: bool = False) -> None:
    """opus sample, rebuild, generate; all published rows; best, explain, query, status, tasks, verify."""
    folder = lake_of(run, "sample", make_sample, fresh)
    lake = ["--lake", folder / "lake"]
    run.views(folder / "lake")
    sums = [
        f"{p.relative_to(folder)} {hashlib.sha256(p.read_bytes()).hexdigest()}"
        for p in sorted((folder / "sample").rglob("*"))
        if p.is_file()
    ]
    run.write("sample_files.txt", "\n".join(sums))
    commands = [(f"query/{name}.txt", [*lake, "query", name, "--format", "csv"]) for name in QUERIES]
    commands += [
        ("best.txt", [*lake, "best"]),
        ("best.json", [*lake, "best", "--format", "json"]),
        ("tasks.txt", [*lake, "tasks"]),
        ("query.txt", [*lake, "query"]),
        ("verify.txt", [*lake, "verify"]),
        ("status.txt", [*lake, "status"]),
        ("models.txt", [*lake, "models"]),
    ]
    commands += [
        (f"explain/{w}.txt", [*lake, "explain", w]) for w in json.loads((INPUTS / "workflows.json").read_text())
    ]
    run.many(commands)
    verified = run.out / "verify.txt"
    verified.write_text(re.sub(r"[\d,.]+ (files|MB|s)\b", r"# \1", verified.read_text("utf-8")), "utf-8")
    status = run.out / "status.txt"
    text = status.read_text("utf-8")
    status.write_text(text.split("The last night beside")[0], "utf-8")


PARTS = {
    f.__name__: f
    for f in (flow_bench, utterances, requirements, programs, forecast, rebuild_log, training, reports, exports, sample)
}


# --- inside a tree's own Python


def child_many(spec: str, out: str) -> None:
    """Runs commands in this process; writes exit code, stdout and stderr of each."""
    from opus_pipelines.cli.main import main

    for name, argv in json.loads(Path(spec).read_text()):
        stdout, stderr = (
            io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True),
            io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True),
        )
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            try:
                code = main(argv)
            except SystemExit as end:
                code = end.code
        texts = [s.buffer.getvalue().decode("utf-8", "replace") for s in (stdout, stderr)]
        texts[1] = re.sub(r"(?m)^ *[\d.]+ s  ", "", texts[1])  # progress: the seconds since the process began
        texts[1] = re.sub(r"(?m)^.* was written by another version: columns that it lacks .*\n", "", texts[1])
        path = Path(out) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"--- exit {code}\n--- stdout\n{texts[0]}--- stderr\n{texts[1]}", "utf-8")


def child_views(lake: str, out: str, wanted: str) -> None:
    """Writes each dataset of a lake as lines of JSON, sorted; long lists as digests."""
    import duckdb

    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple):
            if len(value) > 24 and all(isinstance(v, int | float) for v in value):
                return "digest " + hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
            return [plain(v) for v in value]
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        return hashlib.sha256(value).hexdigest()[:16] if isinstance(value, bytes) else value

    words = tuple(w for w in wanted.split(",") if w)
    Path(out).mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        place = str(Path(lake).resolve())
        db.execute(
            re.sub(
                r"(?m)^SET VARIABLE lake = .*$",
                f"SET VARIABLE lake = '{place}';",
                (Path(lake) / "views.sql").read_text("utf-8"),
            )
        )
        for (name,) in db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall():
            if name in NOT_DATASETS or (words and not name.startswith(words)):
                continue
            rows = db.sql(f'FROM "{name}"')
            columns = [c for c in rows.columns if is_compared(name, c)]
            lines = []
            for row in rows.fetchall():
                values = dict(zip(rows.columns, row, strict=True))
                lines.append(
                    json.dumps({c: plain(values[c]) for c in sorted(columns)}, default=str, ensure_ascii=False)
                )
            if lines:
                (Path(out) / f"{name}.jsonl").write_text("\n".join(sorted(map(masked, lines))) + "\n", "utf-8")


# --- what may differ


def masks() -> list[tuple[re.Pattern[str], str]]:
    days = "|".join((datetime.now(UTC) + timedelta(days=d)).strftime("%Y-%m-%d") for d in (-1, 0))
    return [
        (re.compile(rf"(?:{days})(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|UTC|\+00:00|\+00))?)?"), "<now>"),
        (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<run>"),
        (re.compile(r"\b[a-eg-z][0-9a-f]{16}\b"), "<id>"),  # f…: ids of workflows, which depend on content alone
        (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
        (re.compile(re.escape(str(HOME)) + r"/(?:lakes/[\w.-]+|base_lakes/\w+)"), "<lake>"),
    ]


MASKS = masks()


def masked(text: str) -> str:
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def settle(run: Run) -> None:
    """Masks what may differ in every text file of a part."""
    for path in run.out.rglob("*"):
        if path.is_file() and path.suffix not in (".parquet", ".xlsx", ".png"):
            try:
                text = path.read_text("utf-8")
            except UnicodeDecodeError:
                continue
            for place, word in ((run.work, "<work>"), (run.out, "<out>"), (run.code, "<code>")):
                text = text.replace(str(place), word)
            path.write_text(masked(text), "utf-8")


def run_part(name: str, code: Path, out: Path, fresh: bool) -> float:
    began = time.time()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    work = HOME / "work" / f"{code.name}-{name}-{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    run = Run(code, out, work)
    try:
        PARTS[name](run, **({"fresh": True} if fresh and name in ("sample", "rebuild_log") else {}))
        settle(run)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sums = [
        f"{hashlib.sha256(p.read_bytes()).hexdigest()[:16]}  {p.relative_to(out)}"
        for p in sorted(out.rglob("*"))
        if p.is_file()
    ]
    (out.parent / f"{name}.digests").write_text("\n".join(sums) + "\n")
    return time.time() - began


def differences(base: Path, other: Path) -> list[str]:
    """Lines that say which files differ; empty where none does."""
    if not base.is_dir():
        return [f"  {base} is missing"]
    files = [{str(p.relative_to(f)) for p in f.rglob("*") if p.is_file()} for f in (base, other)]
    lines = [f"  {n}: only in the base" for n in sorted(files[0] - files[1])] + [
        f"  {n}: new" for n in sorted(files[1] - files[0])
    ]
    for name in sorted(files[0] & files[1]):
        a, b = (base / name).read_bytes(), (other / name).read_bytes()
        if a != b:
            texts = [x.decode("utf-8", "replace").splitlines() for x in (a, b)]
            changed = (
                [
                    line
                    for line in difflib.unified_diff(*texts, lineterm="", n=0)
                    if not line.startswith(("---", "+++", "@@"))
                ]
                if sum(map(len, texts)) < 20_000
                else [
                    f"-{x}" if i == 0 else f"+{x}"
                    for i, x in enumerate(next(p for p in zip(*texts, strict=False) if p[0] != p[1]))
                ]
            )
            lines.append(f"  {name}: {len(changed)} lines")
            lines += [f"      {line[:300]}" for line in changed[:6]]
    return lines


def say(name: str, base: Path, other: Path, seconds: float | None, most: int) -> bool:
    lines = differences(base / name, other / name)
    count = sum(1 for p in (other / name).rglob("*") if p.is_file())
    took = "" if seconds is None else f", {seconds:.0f} s"
    files = [line for line in lines if not line.startswith("      ")]
    print(
        f"{name}: same ({count} files{took})"
        if not lines
        else f"{name}: DIFFERS in {len(files)} of {count} files{took}",
        flush=True,
    )
    print(
        "\n".join(lines[:most]) + (f"\n  ... {len(lines) - most} more lines" if len(lines) > most else ""), flush=True
    ) if lines else None
    return not lines


# --- inputs, made once


def make_inputs() -> None:
    shutil.rmtree(INPUTS, ignore_errors=True)
    (INPUTS / "logs" / "receipt").mkdir(parents=True)
    (INPUTS / "logs" / "fines").mkdir()
    shutil.copy(DATA / "event_logs" / "receipt_wabo.xes.gz", INPUTS / "logs" / "receipt")
    (INPUTS / "logs" / "receipt" / "source.toml").write_text('industry = "permits"\n')
    with gzip.open(DATA / "event_logs" / "eventdataR_traffic_fines.csv.gz", "rt") as file:
        lines = file.read().splitlines()
    head, cases = lines[0], {}
    for line in lines[1:]:
        cases.setdefault(line.split(",")[0], []).append(line)
    every = list(cases.values())
    (INPUTS / "logs" / "fines" / "fines.csv").write_text(
        "\n".join([head, *(line for c in every[:400] for line in c)]) + "\n"
    )
    (INPUTS / "logs" / "fines" / "source.toml").write_text(
        'industry = "traffic fines"\ntimezone = "Europe/Rome"\n\n[columns]\ncase = "case_id"\n'
        'activity = "activity"\ntime = "timestamp"\nactor = "resource"\nattributes = ["amount", "article", "vehicleclass"]\n'
    )
    running = [c[: 1 + n % 3] for n, c in enumerate(every[400:460]) if len(c) > 1]
    (INPUTS / "running.csv").write_text("\n".join([head, *(line for c in running for line in c)]) + "\n")
    for place, archive, wanted in (
        ("n8n", DATA / "n8n" / "workflows.tar.gz", ".json"),
        ("bpmn", DATA / "bpmn" / "models.tar.gz", ".bpmn"),
    ):
        (INPUTS / place).mkdir()
        with tarfile.open(archive) as tar:
            members = sorted(
                (m for m in tar if m.isfile() and m.name.endswith(wanted) and 1500 < m.size < 30_000),
                key=lambda m: m.name,
            )
            for m in members[:: max(1, len(members) // 12)][:12]:
                (INPUTS / place / re.sub(r"\W+", "_", Path(m.name).stem)[:60]).with_suffix(wanted).write_bytes(
                    tar.extractfile(m).read()
                )


def make_base_lakes(code: Path) -> None:
    root = HOME / "base_lakes"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    run = Run(code, root, root)
    for kind, make in (("sample", make_sample), ("logs", make_logs)):
        shutil.copytree(lake_of(run, kind, make), root / kind)
    small = root / "small"
    for source in ("castellan_household",):
        shutil.copytree(root / "sample" / "sample" / "history" / source, small / "history" / source)
    run.call([run.opus, "--lake", "lake", "rebuild", "--history", "history"], small)
    lake = root / "sample" / "lake"
    best = json.loads(run.call([run.opus, "--lake", lake, "best", "--format", "json"]).stdout)
    names = {v for row in best for v in row.values() if isinstance(v, str) and re.fullmatch("f[0-9a-f]{16}", v)}
    (INPUTS / "workflows.json").write_text(json.dumps(sorted(names)[:: max(1, len(names) // 6)][:6]))
    run.call([run.opus, "flow", "compare", "--model", "composer", "--samples", INPUTS / "samples.jsonl"])


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in ("_many", "_views"):
        {"_many": child_many, "_views": child_views}[sys.argv[1]](*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("write", "check", "compare", "list", "lakes"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--code", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--lines", type=int, default=40, help="lines shown of each part that differs")
    parser.add_argument("--fresh", action="store_true", help="make the tree's lakes anew")
    given = parser.parse_args()
    parts = given.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if given.verb == "list":
        print("\n".join(f"{name:<14}{f.__doc__}" for name, f in PARTS.items()))
        return 0
    if given.verb == "compare":
        told = [say(n, HOME / given.names[0], HOME / given.names[1], None, given.lines) for n in parts]
        return 0 if all(told) else 1
    code = given.code.resolve()
    if given.verb == "lakes":
        make_inputs()
        make_base_lakes(code)
        return 0
    same = True
    for name in parts:
        out = HOME / (given.names[0] if given.verb == "write" else f"scratch/{code.name}")
        seconds = run_part(name, code, out / name, given.fresh)
        if given.verb == "write":
            print(
                f"{name}: written, {sum(1 for p in (out / name).rglob('*') if p.is_file())} files, {seconds:.0f} s",
                flush=True,
            )
        else:
            same &= say(name, HOME / "base", out, seconds, given.lines)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
