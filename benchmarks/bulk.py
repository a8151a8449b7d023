#!/usr/bin/env python3
"""Measures intakes per second in bulk: 100, 1,000 and 10,000 intakes under one contract.

The intakes are similar to the sample's, and the processes are those of a real run.

    PYTHONPATH=. .venv/bin/python benchmarks/bulk.py [--counts 100 1000 10000] [--own-gains]
        [--precision bfloat16] [--lake LAKE --intakes DIR] [--work DIR] [--results benchmarks/results]

Mines the sample (or takes a lake that was made from it, and its intakes), writes N intakes of about 150 tokens of their
own (the sample's with other figures and one more sentence each, seeded), and generates them as `opus generate` does:
read, encoded, worked on, checked, published. Prints intakes per second, the share of each stage, CPU seconds and the
largest process. What one intake's tasks ask is worked out once for all that ask the same; with `--own-gains` each has a
gain of its own, so that no two do: the dearest case. `--results` also writes bulk.json for `exponents.py`.
"""

import argparse
import json
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from measuring import Family, machine, taken_on

from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.bulk.chunks import GenerationSetup
from opus_pipelines.generation.bulk.encoding import SparkEncoder
from opus_pipelines.generation.bulk.run import BulkRun
from opus_pipelines.generation.results.contract import ContractResult, check_result, publish_contract
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.intakes.intake import ContractFolder, discover
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder, encoder_of
from opus_pipelines.quality.sample import write_sample
from opus_pipelines.reporting.contract_tables import report_tables
from resources.spark import SparkResource
from tests.rebuilding import build_snapshot

WORDS = (
    "invoice",
    "garage",
    "photo",
    "witness",
    "letter",
    "policy",
    "kitchen",
    "receipt",
    "repair",
    "morning",
    "driver",
    "statement",
)


def write_intakes(base: ContractFolder, count: int, into: Path, own_gains: bool = False) -> ContractFolder:
    """`count` variations of the contract's intakes in a contract folder of their own."""
    gain_usd = base.settings.gain_usd or 1.0
    folder = into / base.folder.parent.name / base.folder.name
    intakes = {intake.name for intake in base.intakes}
    shutil.copytree(
        base.folder, folder, ignore=lambda where, names: intakes & set(names) if Path(where) == base.folder else set()
    )
    for number in range(count):
        source = base.intakes[number % len(base.intakes)]
        made = folder / f"intake-{number:06d}"
        shutil.copytree(source, made, ignore=_all_but_text)
        dice = random.Random(f"{number}")
        for path in sorted((made / "input").glob("*")):
            text = re.sub(r"\d", lambda _, dice=dice: str(dice.randrange(10)), path.read_text("utf-8"))
            text += f"Mentioned beside: {', '.join(dice.sample(WORDS, 3))}, number {dice.randrange(10**6)}.\n"
            path.write_text(text, "utf-8")
        if own_gains:
            stated = made / "intake.toml"
            rest = re.sub(r"(?m)^gain_usd.*\n", "", stated.read_text("utf-8") if stated.exists() else "")
            stated.write_text(f"gain_usd = {gain_usd + number / 1000:.3f}\n{rest}", "utf-8")
    return discover(into)[0]


def _all_but_text(where: str, names: list[str]) -> set[str]:
    """What an intake goes without: tables beside its text, and process documents of its own (the contract has some)."""
    return {n for n in names if not n.endswith((".txt", ".md"))} if Path(where).name == "input" else {"process"}


def own_tokens(contract: ContractFolder, settings: Settings) -> float:
    """Mean tokens of an intake's own documents."""
    tokenizer = Encoder(settings.encoder)._loaded[0]
    texts = [
        "\n".join(p.read_text("utf-8") for role in ("input", "output", "process") for p in sorted((i / role).glob("*")))
        for i in contract.intakes[:50]
    ]
    return statistics.fmean(len(tokenizer(text)["input_ids"]) for text in texts)


def run(
    contract: ContractFolder, lake: Lake, settings: Settings, spark: SparkResource, work: Path
) -> tuple[str, dict[str, float]]:
    """One measured run as a line of the table, and its wall and CPU seconds."""
    with Family() as family:
        wall = time.monotonic()
        result, seconds = _made(contract, lake, settings, spark, work)
        wall, cpu = time.monotonic() - wall, family.cpu_seconds
    n = len(contract.intakes)
    shares = ", ".join(f"{name} {100 * s / wall:.0f} %" for name, s in seconds.items())
    failed = f", {len(result.failed)} failed" if result.failed else ""
    missed = f", {result.texts_missed} texts encoded late" if result.texts_missed else ""
    memory = f"{result.memory_mb:.0f} | {family.largest_bytes / 2**20:.0f}"
    line = (
        f"| {n:,} | {wall:.1f} | {cpu:.1f} | {n / wall:.1f} | {1000 * cpu / n:.0f} | {memory} | "
        f"{shares}{failed}{missed} |"
    )
    return line, {"wall_s": round(wall, 1), "cpu_s": round(cpu, 1)}


def _made(
    contract: ContractFolder, lake: Lake, settings: Settings, spark: SparkResource, work: Path
) -> tuple[ContractResult, dict[str, float]]:
    """The published result, and seconds by stage."""
    now = datetime.now(UTC)
    snapshot = lake.current_snapshot()
    assert snapshot is not None
    session = spark.cluster_session
    model = encoder_of(settings.encoder) if session is None else SparkEncoder(settings.encoder, session)
    encoder = CachedEncoder(model, work / "cache")
    with BulkRun(GenerationSetup(lake.root, snapshot, settings), encoder, session, _say) as bulk:
        result = bulk.generate(contract, work / "result", "bulk", now)
    seconds = dict(result.tables["generation/runs"]["seconds"].to_pylist()[0])
    began = time.monotonic()
    result.tables.update(report_tables(result))
    assert all(check.passed for check in check_result(result, len(contract.intakes)))
    publish_contract(Lake(work / "lake"), result, now)
    return result, seconds | {"check, publish": time.monotonic() - began}


def _say(line: str) -> None:
    if ": intake " not in line:
        print(line, file=sys.stderr)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--own-gains", action="store_true")
    parser.add_argument("--lake", type=Path)
    parser.add_argument("--intakes", type=Path)
    parser.add_argument("--contract", default="Motor Claims")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32", help="of the encoder")
    options = parser.parse_args()
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
    work = options.work or Path(tempfile.mkdtemp(prefix="bulk-"))
    settings = Settings(encoder=EncoderSettings(precision=options.precision))
    lake = Lake(options.lake or work / "lake")
    spark = SparkResource.of(
        settings.model_copy(update={"paths": settings.paths.model_copy(update={"lake": lake.root})})
    )
    intakes = options.intakes
    if options.lake is None:
        sample = write_sample(work / "sample")
        intakes = sample.intakes_folder
        now = datetime.now(UTC)
        encoder = CachedEncoder(Encoder(settings.encoder), lake.kept / "embeddings")
        build_snapshot(spark.session, lake, settings, read_history(lake, sample.history, now), lambda: encoder, now)
    base = next(c for c in discover(intakes) if c.contract == options.contract)
    print(machine())
    print(
        "| intakes | wall s | CPU s | a second | CPU ms an intake | worker and child MB | largest worker MB | share "
        "of wall |"
    )
    print("| --- " * 8 + "|")
    found: dict[int, dict[str, float]] = {}
    for count in options.counts:
        place = work / f"n{count}"
        contract = write_intakes(base, count, place / "intakes", options.own_gains)
        if count == options.counts[0]:
            print(f"about {own_tokens(contract, settings):.0f} tokens of its own an intake", file=sys.stderr)
        line, found[count] = run(contract, lake, settings, spark, place)
        print(line, flush=True)
        if options.results:
            written = {**taken_on(), "intakes": found}
            (options.results / "bulk.json").write_text(json.dumps(written, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
