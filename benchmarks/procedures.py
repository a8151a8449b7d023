#!/usr/bin/env python3
"""Plans requests with procedures that strangers wrote, by the real pipeline in a lake of its own.

    .venv/bin/python benchmarks/procedures.py OUT PREDICTIONS.jsonl [--work DIR]
    .venv/bin/python benchmarks/procedures.py sentences SENTENCES.jsonl READINGS.jsonl

OUT is what the benchmark's own script writes: OUT/intakes/CLIENT/CONTRACT with contract.toml, catalogue.jsonl and a
folder for each intake, and OUT/ids.jsonl with {"id", "client", "contract", "intake"}. The history is the sample's,
which has none of these industries. A prediction is {"id", "tasks", "verdict"}: the steps of the rank-1 workflows of all
goals, one goal after the other, each once, and "clear" where every goal is clear, "undecided" where one is not,
"refused" where there is no workflow. Nothing but OUT is seen.

`sentences` reads single sentences, {"id", "sentence", "document", "tasks"}, with the reader alone, and writes {"id",
"rule", "kind", "tasks"}.
"""

import argparse
import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from two_jobs import KEPT, opus, rebuild_and_generate, to_write, workplace  # type: ignore[import-not-found]
from two_jobs import read as lines

from opus_pipelines.core.ids import make_id

if TYPE_CHECKING:
    from opus_pipelines.language.reading.reader import SentenceReading

LEAST_PART = 0.25  # share of a sentence's characters that a passage of it has
STRONGEST = ("forbid", "condition", "order", "guard", "ask", "none")  # the kind of a sentence of several passages
MOST_GOALS = 1_000  # of one intake
RANKED = """
    select i.client, i.contract, i.folder, o.intake_id, o.intention_id, o.verdict,
        list(t.title order by t.position) as tasks
    from workflows_optimized o
    join generation_intakes i using (intake_id)
    join workflows_tasks t using (workflow_id)
    where o.rank = 1 and t.kind = 'task'
    group by all
"""


def main() -> int:
    """Run both jobs on the intakes, write the predictions."""
    if sys.argv[1:2] == ["sentences"]:
        return read_sentences(*map(Path, sys.argv[2:4]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("asked", type=Path, metavar="OUT")
    parser.add_argument("predictions", type=to_write)
    parser.add_argument("--work", type=Path, help=KEPT)
    arguments = parser.parse_args()
    with workplace(arguments.work, "procedures") as work:
        if not (work / "history").exists():
            opus(work, "sample", "sample")
            (work / "sample" / "history").rename(work / "history")
        shutil.rmtree(work / "intakes", ignore_errors=True)
        shutil.copytree(arguments.asked / "intakes", work / "intakes")
        rebuild_and_generate(work)
        predicted = predict(work, arguments.asked / "intakes")
    with arguments.predictions.open("w") as file:
        for row in lines(arguments.asked / "ids.jsonl"):
            found = predicted.get((row["client"], row["contract"], row["intake"]), {"tasks": [], "verdict": "refused"})
            file.write(json.dumps({"id": row["id"], **found}, ensure_ascii=False) + "\n")
    return 0


def predict(work: Path, intakes: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Tasks and verdict of each intake folder, the tasks as the catalogue spells them."""
    rows = json.loads(opus(work, "query", RANKED, "--format", "json"))
    of_intake: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        of_intake[row["client"], row["contract"], Path(row["folder"]).name].append(row)
    found = {}
    for (client, contract, folder), goals in of_intake.items():
        ids = [make_id("n", goals[0]["intake_id"], n) for n in range(MOST_GOALS)]
        goals.sort(key=lambda goal: ids.index(goal["intention_id"]))
        names = [entry["name"] for entry in lines(intakes / client / contract / "catalogue.jsonl")]
        spelled = {spelling(name): name for name in names}
        tasks = dict.fromkeys(spelled.get(spelling(task), task) for goal in goals for task in goal["tasks"])
        is_clear = all(goal["verdict"] == "clear" for goal in goals)
        found[client, contract, folder] = {"tasks": list(tasks), "verdict": "clear" if is_clear else "undecided"}
    return found


def spelling(name: str) -> str:
    """The letters and digits of a name, in lower case."""
    return "".join(filter(str.isalnum, name)).casefold()


def read_sentences(asked: Path, readings: Path) -> int:
    """Write what the reader says of each sentence in its document."""
    from opus_pipelines.language.embedding.encoder import Encoder
    from opus_pipelines.language.reading.alignment import Candidate
    from opus_pipelines.language.reading.reader import read
    from opus_pipelines.lwm.retrieval.case_memory import RememberedVectors

    encode = RememberedVectors(Encoder())
    with to_write(str(readings)).open("w") as file:
        for row in lines(asked):
            tools = [Candidate(t["name"], t.get("description") or "") for t in row["tasks"]]
            said = of_sentence(row["sentence"], read([row["document"]], "", tools, encode).sentences)
            kind = min((s.kind for s in said), key=STRONGEST.index, default="none")
            tasks = [tools[n].name for n in dict.fromkeys(task for s in said for task in s.tasks)]
            file.write(json.dumps({"id": row["id"], "rule": kind != "none", "kind": kind, "tasks": tasks}) + "\n")
    return 0


def of_sentence(sentence: str, readings: "Sequence[SentenceReading]") -> "list[SentenceReading]":
    """The records of the passages that a sentence consists of, or that it is a part of."""
    own = words(sentence)
    both = [(s, words(s.passage.text)) for s in readings]
    return [s for s, text in both if (text in own or own in text) and len(text) >= LEAST_PART * len(own)]


def words(text: str) -> str:
    """The words of a text in lower case."""
    return " ".join(re.findall(r"\w+", text)).casefold()


if __name__ == "__main__":
    sys.exit(main())
