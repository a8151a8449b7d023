#!/usr/bin/env python3
"""Proves that a change of the code does not change the rows that are published.

    scripts/same_rows.py write AFTER.json                                    make the sample's rows with the code as it
    is now
    scripts/same_rows.py compare scripts/same_rows_baseline.json AFTER.json  compare them with those of the baseline

`write` uses the command line as a person does (`opus sample`, `opus rebuild`, `opus generate`, in a scratch folder;
about three minutes), reads every dataset through the lake's own `views.sql`, and writes for each dataset its number of
rows, a digest of its rows and a digest of each column. The order of the rows plays no part. Columns that depend on the
clock, on the run or on the version of the code are left out (scripts/left_out.py). The rows themselves are written
beside the JSON file, in AFTER.rows/, so that `compare` can show what differs. `write` takes the code of this checkout,
or that of `--code`; every OPUS_* variable is cleared.

`write --sopbench DATA` adds the predictions of benchmarks/sopbench.py for fold 0 of SOPBench, held out by key (dataset
sopbench_key) and by goal (sopbench_goal). `--without-sample` leaves the sample out.

`compare` prints a table of the datasets and exits with 1 where anything differs. Words that were changed on purpose
stand in a name map, scripts/renamed.toml: it translates the rows of AFTER into the words of BEFORE, so it needs
AFTER.rows/ as soon as it is not empty.

scripts/same_rows_baseline.json has the digests of commit ff961eb, without rows. Digests depend on the processor and on
the pinned packages in the last bits of floating-point numbers: on another machine, write the baseline anew:

    git worktree add ../before ff961eb && scripts/same_rows.py write BEFORE.json --code ../before
"""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from left_out import NOT_DATASETS, is_compared

ROOT = Path(__file__).resolve().parents[1]
NAMES = ROOT / "scripts" / "renamed.toml"

FOLD = "0"
SHOWN = 90  # characters of a value that `compare` prints


Rows = Mapping[str, list[Any]]  # of one dataset: Python values by column, all columns of one length


class SameRowsError(Exception):
    """An input cannot be used, or a command of the pipeline failed."""


# --- digests


def digest(parts: Iterable[str]) -> str:
    """16 hex digits of texts, whatever their order; equal texts count as often as they stand there."""
    hasher = hashlib.sha256()
    for part in sorted(parts):
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big") + data)
    return hasher.hexdigest()[:16]


def cell_text(value: Any) -> str:
    """A value as canonical JSON: equal values give equal text. Floats have all their digits."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def rows_of(table: pa.Table) -> Rows:
    """The rows of an Arrow table as Python values by column."""
    return {column: table[column].to_pylist() for column in table.column_names}


def cells(dataset: str, rows: Rows) -> dict[str, list[str]]:
    """The compared columns in alphabetical order, each value as text."""
    return {
        column: [cell_text(value) for value in rows[column]] for column in sorted(rows) if is_compared(dataset, column)
    }


def digests(dataset: str, rows: Rows) -> dict[str, Any]:
    """The number of rows of a dataset, the digest of its rows, and the digest of the values of each column."""
    texts = cells(dataset, rows)
    return {
        "rows": len(next(iter(rows.values()), [])),
        "digest": digest("\t".join(row) for row in zip(*texts.values(), strict=True)),
        "columns": {column: digest(values) for column, values in texts.items()},
    }


# --- the name map


@dataclass(frozen=True)
class NameMap:
    """What was renamed on purpose: words of BEFORE and the words of AFTER that replaced them.

    Attributes:
        datasets: Former name of a dataset -> its name now.
        columns: Former `dataset.column` (or `dataset.column.field` of a struct) -> the last part's name now.
        values: Former `dataset.column` (or `dataset.column.field`) -> {former value: the value now}.
        left_out: `dataset.column` (in the words of BEFORE; a new column by its new name) or a whole dataset that is not
        compared.
    """

    datasets: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path) -> "NameMap":
        """Reads a name map.

        Raises SameRowsError where it has unknown keys, or maps two former words of one place to the same word.
        """
        content = tomllib.loads(path.read_text("utf-8"))
        if unknown := set(content) - {"datasets", "columns", "values", "left_out"}:
            raise SameRowsError(f"{path}: unknown keys {sorted(unknown)}")
        names = cls(
            content.get("datasets", {}),
            content.get("columns", {}),
            content.get("values", {}),
            frozenset(content.get("left_out", ())),
        )
        siblings: dict[str, list[str]] = {}
        for place, now in names.columns.items():
            siblings.setdefault(place.rpartition(".")[0], []).append(now)
        for where, words in {
            "datasets": list(names.datasets.values()),
            **siblings,
            **{place: list(map_.values()) for place, map_ in names.values.items()},
        }.items():
            if twice := [word for word, count in Counter(words).items() if count > 1]:
                raise SameRowsError(
                    f"{path}: {where}: two former words became {twice[0]}; such a map hides differences"
                )
        return names

    def __bool__(self) -> bool:
        return bool(self.datasets or self.columns or self.values or self.left_out)

    def former_dataset(self, name: str) -> str:
        """The name that a dataset of AFTER had."""
        return next((former for former, now in self.datasets.items() if now == name), name)

    def former_rows(self, dataset: str, rows: Rows) -> Rows:
        """Rows of AFTER, of a dataset's former name, in the words of BEFORE, less what the map leaves out."""
        former: dict[str, list[Any]] = {}
        for column, values in rows.items():
            place = self._former_place(dataset, column)
            if place not in self.left_out:
                former[place.rpartition(".")[2]] = [self._former_value(place, value) for value in values]
        return former

    def _former_place(self, parent: str, name: str) -> str:
        for place, now in self.columns.items():
            if now == name and place.rpartition(".")[0] == parent:
                return place
        return f"{parent}.{name}"

    def _former_value(self, place: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._former_value(place, item) for item in value]
        if isinstance(value, dict):
            inner = {name: self._former_place(place, name) for name in value}
            return {
                inner[name].rpartition(".")[2]: self._former_value(inner[name], item) for name, item in value.items()
            }
        if isinstance(value, str) and place in self.values:
            words = self.values[place]
            left_over = f"{value} (a former word)" if value in words else value  # such a value should have been renamed
            return next((former for former, now in words.items() if now == value), left_over)
        return value


# --- write: making and reading rows


def environment(code: Path) -> dict[str, str]:
    """Returns the variables that the pipeline runs with.

    They are those of this process without OPUS_*, with a Java, and without access to a model hub.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPUS_")}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return kept | offline | {"PYTHONPATH": str(code), "JAVA_HOME": output_of(str(code / "scripts" / "find_java.sh"))}


def output_of(*command: str) -> str:
    """Returns what a command writes to standard output, without blanks at its ends."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def run(command: list[str], folder: Path, code: Path, output: Path | None = None) -> None:
    """Runs a command with the pipeline's variables; its output goes to standard error, or to a file.

    Raises SameRowsError where the command fails.
    """
    print("+", *command, file=sys.stderr)
    with output.open("w") if output else contextlib.nullcontext(sys.stderr) as file:
        status = subprocess.run(command, cwd=folder, env=environment(code), stdout=file).returncode
    if status:
        raise SameRowsError(f"exit status {status}: {' '.join(command)}")


def make_lake(code: Path, folder: Path) -> Path:
    """Makes a lake of the sample in an empty folder as a person does, with the code of a checkout; returns the lake."""
    # The module is read from pyproject.toml, so that this file need not change when the command line moves.
    module = tomllib.loads((code / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]["opus"].split(":")[0]
    lake, sample = folder / "lake", folder / "sample"
    opus = [sys.executable, "-m", module, "--lake", str(lake)]
    run([*opus, "sample", str(sample)], folder, code)
    run([*opus, "rebuild", "--history", str(sample / "history")], folder, code)
    run([*opus, "generate", "--intakes", str(sample / "intakes")], folder, code)
    return lake


def read_lake(lake: Path) -> dict[str, pa.Table]:
    """Every dataset of a lake, as its `views.sql` shows it: what is published and current.

    Raises SameRowsError where the folder has no `views.sql`, so is not a lake.
    """
    views = lake / "views.sql"
    if not views.is_file():
        raise SameRowsError(f"{lake} is not a lake: it has no views.sql")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(views.read_text("utf-8"))
        connection.execute("SET VARIABLE lake = ?", [str(lake.resolve())])  # a lake that was moved
        names = connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY view_name"
        ).fetchall()
        return {
            name: connection.sql(f'FROM "{name}"').to_arrow_table() for (name,) in names if name not in NOT_DATASETS
        }


def predict_sopbench(code: Path, folder: Path, data: Path, by: str) -> pa.Table:
    """The predictions of a checkout's code for one fold of SOPBench, a row for each intake: task_key and actions.

    `data` is the folder of SOPBench's data, beside which stands the script that splits it, `../../bench/sopbench.py`;
    `by` says what is held out, `key` or `goal`.
    """
    splitter = data.resolve().parents[1] / "bench" / "sopbench.py"
    if not splitter.is_file():
        raise SameRowsError(f"{splitter} is missing: it splits the data of SOPBench")
    parts = {what: folder / f"{what}-{by}.jsonl" for what in ("history", "intakes")}
    for what, path in parts.items():
        run([sys.executable, str(splitter), what, str(data.resolve()), "--by", by, "--fold", FOLD], folder, code, path)
    predictions = folder / f"predictions-{by}.jsonl"
    benchmark = code / "benchmarks" / "sopbench.py"
    run([sys.executable, str(benchmark), str(parts["history"]), str(parts["intakes"]), str(predictions)], folder, code)
    return read_predictions(predictions)


def read_predictions(path: Path) -> pa.Table:
    """The predictions that benchmarks/sopbench.py wrote: task_key and actions."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return pa.Table.from_pylist(rows, schema=pa.schema([("task_key", pa.string()), ("actions", pa.list_(pa.string()))]))


def rows_folder(path: Path) -> Path:
    """The folder beside a JSON file that holds its rows."""
    return path.with_suffix(".rows")


def write_digests(path: Path, tables: Mapping[str, pa.Table], code: str) -> None:
    """Writes the digests of datasets to a JSON file, and their rows to the folder beside it, in place of older ones.

    `code` is the commit that made the rows.
    """
    folder = rows_folder(path)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    content = {
        "commit": code,
        "datasets": {name: digests(name, rows_of(table)) for name, table in sorted(tables.items())},
    }
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def commit_of(code: Path) -> str:
    """The commit of a checkout, marked where files differ from it."""
    git = ("git", "-C", str(code))
    commit = output_of(*git, "rev-parse", "HEAD")
    return f"{commit} with changes" if output_of(*git, "status", "--porcelain") else commit


# --- compare


def read_digests(path: Path) -> dict[str, dict[str, Any]]:
    """The digests by dataset that `write` wrote to a JSON file."""
    content: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8"))["datasets"]
    return content


def read_rows(path: Path) -> dict[str, Rows] | None:
    """The rows beside a JSON file by dataset; None where there are none."""
    folder = rows_folder(path)
    return (
        {file.stem: rows_of(pq.read_table(file)) for file in sorted(folder.glob("*.parquet"))}
        if folder.is_dir()
        else None
    )


def in_former_words(datasets: Mapping[str, Rows], names: NameMap) -> dict[str, dict[str, Any]]:
    """The digests of the rows of AFTER in the words of BEFORE."""
    former = {}
    for name, rows in datasets.items():
        dataset = names.former_dataset(name)
        former[dataset] = digests(dataset, names.former_rows(dataset, rows))
    return former


@dataclass(frozen=True)
class Difference:
    """How one dataset compares.

    Attributes:
        dataset: Its name in the words of BEFORE.
        rows: Its number of rows, or both numbers where they differ.
        result: `same`, or what differs.
        is_same: Whether nothing differs.
    """

    dataset: str
    rows: str
    result: str
    is_same: bool


def compare_dataset(
    dataset: str, before: dict[str, Any] | None, after: dict[str, Any] | None, is_partial: bool = False
) -> Difference:
    """Compares the digests of one dataset, which are None where a side lacks it.

    `is_partial`: the map leaves a column out that the digest of the rows of BEFORE contains, so only the columns are
    compared.
    """
    if before is None or after is None:
        rows = str((before or after or {}).get("rows"))
        return Difference(dataset, rows, f"is missing in {'AFTER' if before else 'BEFORE'}", False)
    findings = []
    rows = str(before["rows"])
    if before["rows"] != after["rows"]:
        rows = f"{before['rows']} -> {after['rows']}"
        findings.append("number of rows")
    old, new = before["columns"], after["columns"]
    for label, columns in (
        ("columns differ", [c for c in old if c in new and old[c] != new[c]]),
        ("columns missing in AFTER", [c for c in old if c not in new]),
        ("columns missing in BEFORE", [c for c in new if c not in old]),
    ):
        if columns:
            findings.append(f"{label}: {', '.join(columns)}")
    if not findings and before["digest"] != after["digest"] and not is_partial:
        findings.append("every column has the same values, but they stand together in other rows")
    same = "same (columns only: BEFORE has no rows)" if is_partial else "same"
    return Difference(dataset, rows, "; ".join(findings) or same, not findings)


def compare(before: Path, after: Path, names: NameMap) -> list[Difference]:
    """Compares two files of digests; returns a result for each dataset of either side that the map does not leave out.

    Raises SameRowsError where the map needs rows that are missing, or names what neither side has.
    """
    old, new = read_digests(before), read_digests(after)
    partial: set[str] = set()
    if names:
        after_rows = read_rows(after)
        if after_rows is None:
            raise SameRowsError(
                f"the name map is not empty, and {rows_folder(after)} is missing: write {after.name} again"
            )
        _check_names(names, old, new)
        new = in_former_words(after_rows, names)
        before_rows = read_rows(before)
        only_left_out = NameMap(left_out=names.left_out)
        for dataset, column in (p.split(".", 1) for p in names.left_out if "." in p):
            if dataset in old and column in old[dataset]["columns"]:
                if before_rows is not None:
                    old[dataset] = digests(dataset, only_left_out.former_rows(dataset, before_rows[dataset]))
                else:
                    del old[dataset]["columns"][column]
                    partial.add(dataset)
    compared = sorted((old.keys() | new.keys()) - names.left_out)
    return [compare_dataset(d, old.get(d), new.get(d), d in partial) for d in compared]


def _check_names(names: NameMap, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """A word of the map that nothing has is a mistake in the map, and would hide that it does nothing."""
    now = {former: new.get(name, {}) for former, name in {**{d: d for d in new}, **names.datasets}.items()}
    columns = {d: {*old.get(d, {}).get("columns", ()), *now.get(d, {}).get("columns", ())} for d in (*old, *now)}
    mistakes = [d for d in names.datasets if d not in old]
    for place in (*names.columns, *names.values, *(p for p in names.left_out if "." in p)):
        dataset, column = place.split(".")[:2]
        if column not in columns.get(dataset, ()) and is_compared(dataset, column):
            mistakes.append(place)
    mistakes += [d for d in names.left_out if "." not in d and d not in columns]
    if mistakes:
        raise SameRowsError(f"the name map names what neither side has: {', '.join(mistakes)}")


def example(dataset: str, old_tables: Mapping[str, Rows], new_tables: Mapping[str, Rows], names: NameMap) -> list[str]:
    """A row that differs, as lines `column: before -> after`; empty where one side has no rows.

    The two rows are those with the most equal values among the first that only one side has.
    """
    new_name = names.datasets.get(dataset, dataset)
    if dataset not in old_tables or new_name not in new_tables:
        return []
    old = cells(dataset, NameMap(left_out=names.left_out).former_rows(dataset, old_tables[dataset]))
    new = cells(dataset, names.former_rows(dataset, new_tables[new_name]))
    columns = [c for c in old if c in new]
    sides = [Counter(zip(*(side[c] for c in columns), strict=True)) for side in (old, new)]
    only_old, only_new = sorted((sides[0] - sides[1]).elements())[:50], sorted((sides[1] - sides[0]).elements())[:2000]
    if not only_old or not only_new:
        return [f"{len(only_old)} rows or more are only in BEFORE, {len(only_new)} or more only in AFTER"]
    pairs = ((a, b) for a in only_old for b in only_new)
    a, b = max(pairs, key=lambda pair: sum(x == y for x, y in zip(*pair, strict=True)))
    return [f"{c}: {x[:SHOWN]} -> {y[:SHOWN]}" for c, x, y in zip(columns, a, b, strict=True) if x != y][:8]


def print_table(differences: list[Difference]) -> None:
    """Prints dataset, rows and result, a line for each dataset."""
    lines = [("dataset", "rows", "result"), *((d.dataset, d.rows, d.result) for d in differences)]
    widths = [max(len(line[i]) for line in lines) for i in (0, 1)]
    for name, rows, result in lines:
        print(f"{name:{widths[0]}}  {rows:>{widths[1]}}  {result}")


# --- the command line


def write_command(arguments: argparse.Namespace) -> int:
    """Makes or takes a lake and writes its digests."""
    out, code = arguments.out.resolve(), arguments.code.resolve()
    tables: dict[str, pa.Table] = {}
    work = Path(tempfile.mkdtemp(prefix="opus-same-rows-"))
    try:
        if arguments.lake:
            tables |= read_lake(arguments.lake.resolve())
        elif not arguments.without_sample:
            tables |= read_lake(make_lake(code, work))
        if arguments.sopbench:
            tables |= {f"sopbench_{by}": predict_sopbench(code, work, arguments.sopbench, by) for by in ("key", "goal")}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if not tables:
        raise SameRowsError("there is nothing to write: --without-sample without --sopbench")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_digests(out, tables, commit_of(code))
    print(f"{len(tables)} datasets, {sum(t.num_rows for t in tables.values()):,} rows: {out}, {rows_folder(out)}")
    return 0


def compare_command(arguments: argparse.Namespace) -> int:
    """Compares two files and prints the table; 1 where something differs."""
    names = NameMap.read(arguments.names)
    differences = compare(arguments.before, arguments.after, names)
    print_table(differences)
    different = [d for d in differences if not d.is_same]
    old_rows, new_rows = (read_rows(path) or {} if different else {} for path in (arguments.before, arguments.after))
    for difference in different:
        for line in example(difference.dataset, old_rows, new_rows, names):
            print(f"  {difference.dataset}, for example  {line}")
    if different:
        print(f"FAILED: {len(different)} of {len(differences)} datasets differ")
        return 1
    print(f"OK: {len(differences)} datasets are the same")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    verbs = parser.add_subparsers(required=True, metavar="write | compare")
    about = "Write the digests of the published rows."
    write = verbs.add_parser("write", help=about, description=about)
    write.add_argument(
        "out", type=Path, metavar="OUT.json", help="the file to write; the rows go to OUT.rows/ beside it"
    )
    source = write.add_mutually_exclusive_group()
    source.add_argument("--lake", type=Path, help="read this lake and make nothing")
    source.add_argument("--without-sample", action="store_true", help="leave the sample out")
    write.add_argument(
        "--sopbench", type=Path, metavar="DATA", help="add SOPBench's predictions; DATA is ../shared/data/sopbench"
    )
    write.add_argument(
        "--code", type=Path, default=ROOT, help="the checkout whose code makes the rows; default: this one"
    )
    write.set_defaults(command=write_command)
    about = "Compare two files of digests. Exit status: 0 the same, 1 something differs, 2 an input cannot be used."
    compare_ = verbs.add_parser("compare", help="compare two files of digests", description=about)
    compare_.add_argument("before", type=Path, metavar="BEFORE.json", help="the baseline")
    compare_.add_argument("after", type=Path, metavar="AFTER.json", help="the code as it is now")
    compare_.add_argument("--names", type=Path, default=NAMES, help="the name map; default: scripts/renamed.toml")
    compare_.set_defaults(command=compare_command)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parsed = parse(arguments)
    try:
        status: int = parsed.command(parsed)
    except (SameRowsError, OSError) as error:
        print(f"same_rows: {error}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
