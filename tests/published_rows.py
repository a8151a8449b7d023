"""What each stage publishes, as a few figures a column that are the same on every machine, and how they are held
against a file.

The sentence encoder's last bits differ between processors, so that floats are compared with a tolerance and ids are
left out: of a column of numbers their count, sum and sum of squares are kept, of a column of texts their count, how
many differ, and a hash of all.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import sqrt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core import schemas
from opus_pipelines.core.ids import digest
from opus_pipelines.core.versions import ALGORITHM_VERSIONS
from opus_pipelines.generation.results.contract import ContractResult
from opus_pipelines.lake.layout import Lake, read_json, read_table
from opus_pipelines.reporting.contract_tables import report_tables

FILE = Path(__file__).with_name("algorithm_versions.json")
TOLERANCE = 1e-4
OF_SNAPSHOT = {
    "embedding": (schemas.EMBEDDINGS, schemas.IMPLEMENTATION_VECTORS, schemas.PROCEDURE_VECTORS),
    "resolution": (schemas.ALIASES,),
    "wkg": (
        schemas.TASKS,
        schemas.TASK_IMPLEMENTATIONS,
        schemas.EDGES,
        schemas.WAITS,
        schemas.NEEDS,
        schemas.VARIANTS,
        schemas.CONTEXTS,
        schemas.CASES,
        schemas.PROCEDURES,
    ),
}
OF_RESULT = {
    "requirements": (schemas.INTENTIONS,),
    "retrieval": (schemas.NEIGHBOURS, schemas.SUBGRAPH_TASKS, schemas.SUBGRAPH_EDGES),
    "lwm": (schemas.SEQUENCES,),
    "planning": (schemas.WFG_NODES, schemas.WFG_EDGES, schemas.OPTIMIZED),
    "generation": (schemas.INTAKES, schemas.WORKFLOW_TASKS, schemas.WORKFLOW_EDGES, schemas.EXPECTED_FLOW),
}
NOT_HELD = {  # the clock, a person's decisions, the differences of two results or snapshots, evaluations and forecasts
    "generation/runs",
    "decisions",
    "wkg/changes",
    "workflows/changes",
    "evaluations/items",
    "evaluations/flows",
    "forecasts/cases",
    "forecasts/limits",
    "forecasts/next_steps",
    "evaluations/utterances",
    "flows/catalogue",  # of a contract's utterances, which the sample has not
    "flows/flows",
    "flows/scores",
    "ops/runs",
    "programs/runs",
    "programs/steps",
    "programs/searches",
    "programs/curves",
}
# Columns that a later stage writes into an earlier one's table: what became of each demand is known when workflows were
# searched.
OF_A_LATER_STAGE = {
    "planning": (
        *(
            f"generation/intentions: constraints[].{field}"
            for field in ("effect", "status", "asks", "nearest[]", "why", "differs")
        ),
        "generation/intentions: rules_not_applied",
    ),
}
_VERSION_COLUMNS = ("model_version", "code_version")
_ID = re.compile(r"\b(?:[a-z][0-9a-f]{16}|[0-9a-f]{32,64})\b")
_DECIMAL = re.compile(r"\d+\.\d+(?:[eE][-+]?\d+)?")

Figures = dict[str, list[Any]]  # dataset and column → its figures


def published(lake: Lake, results: Mapping[tuple[str, str], ContractResult]) -> dict[str, Figures]:
    """The figures of all that every stage made: of the lake's current snapshot and of these results."""
    tables = {"history": _history(lake), "mining": _parts(lake, "aggregates"), "resolution": _parts(lake, "names")}
    snapshot = lake.snapshot_folder(lake.current_snapshot() or "")
    for stage, datasets in OF_SNAPSHOT.items():
        tables[stage] = tables.get(stage, {}) | {
            d.name: read_table(d, snapshot / d.name.removeprefix("wkg/")) for d in datasets
        }
    made = [results[key] for key in sorted(results)]
    for stage, datasets in OF_RESULT.items():
        tables[stage] = {d.name: pa.concat_tables([result.tables[d.name] for result in made]) for d in datasets}
    reports = [report_tables(result) for result in made]
    tables["reporting"] = {name: pa.concat_tables([report[name] for report in reports]) for name in reports[0]}
    figures = {stage: _figures(tables[stage]) for stage in ALGORITHM_VERSIONS}
    for stage, names in OF_A_LATER_STAGE.items():
        figures[stage] |= {name: figures["requirements"].pop(name) for name in names}
    return figures


def problem(
    recorded: Mapping[str, Any],
    found: Mapping[str, Figures],
    command: str,
    versions: Mapping[str, int] = ALGORITHM_VERSIONS,
) -> str | None:
    """What is wrong with the recorded versions or rows, and what to do; None where nothing is."""
    raised = [stage for stage in versions if recorded.get(stage, {}).get("version") != versions[stage]]
    known = {stage: part["rows"] for stage, part in recorded.items()}
    changed = {stage: columns for stage in versions if (columns := differences(known.get(stage, {}), found[stage]))}
    first_raised = min((list(versions).index(stage) for stage in raised), default=len(versions))
    for stage, columns in changed.items():
        if list(versions).index(stage) < first_raised:
            return (
                f"{stage} publishes other rows than before in {len(columns)} columns, and its version is still "
                f"{versions[stage]}: {'; '.join(columns[:5])}. If this is intended, raise "
                f"ALGORITHM_VERSIONS[{stage!r}] in "
                f"opus_pipelines/core/versions.py (or that of the earlier stage which caused it), then run {command}"
            )
    if raised or recorded.keys() - versions.keys():
        return (
            f"{FILE.name} is not of the versions in opus_pipelines/core/versions.py "
            f"({', '.join(raised) or 'a stage is gone'}): run {command}"
        )
    return None


def differences(recorded: Figures, found: Figures) -> list[str]:
    """The columns whose figures differ by more than the tolerance, each with both."""
    names = [*found, *(name for name in recorded if name not in found)]
    return [f"{n}: {recorded.get(n)} → {found.get(n)}" for n in names if not _same(recorded.get(n), found.get(n))]


def write(found: Mapping[str, Figures]) -> None:
    """Write the file anew: one line a column, so that a comparison of two versions of it is readable."""
    parts = []
    for stage, figures in found.items():
        lines = ",\n".join(f"   {json.dumps(name)}: {json.dumps(values)}" for name, values in figures.items())
        parts.append(f'  {json.dumps(stage)}: {{"version": {ALGORITHM_VERSIONS[stage]}, "rows": {{\n{lines}\n  }}}}')
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def _history(lake: Lake) -> dict[str, pa.Table]:
    rejects = sorted((lake.root / schemas.REJECTS.name).glob("*/*"))
    folders = [lake.root / source["folder"] for source in _sources(lake)]
    return {
        schemas.IMPLEMENTATIONS.name: read_table(schemas.IMPLEMENTATIONS, *folders),
        schemas.SOURCES.name: read_table(schemas.SOURCES, lake.folder(schemas.SOURCES)),
        schemas.REJECTS.name: read_table(schemas.REJECTS, *rejects),
    }


def _parts(lake: Lake, kind: str) -> dict[str, pa.Table]:
    """The files beside history of every source, by file name: `aggregates` or `names`."""
    folders = [lake.root / source[kind] for source in _sources(lake)]
    names = sorted({file.name for folder in folders for file in folder.glob("*.parquet")})
    return {
        f"{kind}/{name}": pa.concat_tables([pq.ParquetFile(folder / name).read() for folder in folders])
        for name in names
    }


def _sources(lake: Lake) -> list[dict[str, Any]]:
    manifest = read_json(lake.snapshot_folder(lake.current_snapshot() or "") / "manifest.json")
    assert manifest is not None
    return list(manifest["inputs"]["sources"])


def _figures(tables: Mapping[str, pa.Table]) -> Figures:
    found: Figures = {}
    for name, table in tables.items():
        found[f"{name}: rows"] = [table.num_rows]
        for column in table.column_names:
            for path, values in _leaves(column, table[column].combine_chunks()):
                if path not in _VERSION_COLUMNS:
                    found[f"{name}: {path}"] = _of_column(values)
    return found


def _leaves(path: str, values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """The columns of plain values inside a column of structs, lists and maps."""
    kind = values.type
    if pa.types.is_map(kind):
        flat = pc.list_flatten(values.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
        yield from _leaves(path, flat)
    elif pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(f"{path}[]", pc.list_flatten(values))
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", pc.struct_field(values, field.name))
    else:
        yield path, values.drop_null()


def _of_column(values: pa.Array) -> list[Any]:
    if pa.types.is_string(values.type) or pa.types.is_timestamp(values.type):
        texts = [str(value) for value in values.cast(pa.string()).to_pylist()]
        same_everywhere = Counter(_DECIMAL.sub("#", _ID.sub("id", text)) for text in texts)
        return [len(texts), len(set(texts)), digest(sorted(same_everywhere.items()))[:12]]
    numbers = (
        values.cast(pa.float64()) if not pa.types.is_boolean(values.type) else values.cast(pa.int8()).cast(pa.float64())
    )
    squares = pc.sum(pc.multiply(numbers, numbers)).as_py() or 0.0
    return [len(numbers), *(float(f"{value:.6g}") for value in (pc.sum(numbers).as_py() or 0.0, squares))]


def _same(one: list[Any] | None, other: list[Any] | None) -> bool:
    if one is None or other is None or len(one) != 3 or isinstance(one[2], str) or isinstance(other[2], str):
        return one == other
    (n, first, squares), (m, second, other_squares) = one, other
    largest = sqrt(n * max(squares, other_squares))  # no sum of n such numbers is larger
    close = abs(first - second) <= TOLERANCE * largest and abs(squares - other_squares) <= 2 * TOLERANCE * max(
        squares, other_squares
    )
    return bool(n == m and close)
