#!/usr/bin/env python3
"""Learning curves of the language model that writes flows, on one fold of a folder of Flow-Bench's form.

    PYTHONPATH=. .venv/bin/python benchmarks/flow_learning_curve.py FOLDER [--model DIR] [--epochs N] [--asked N]

One curve is over the demonstrations in a prompt (0, 1, 3, 5), without training. The other is over the flows that a LoRA
adapter learns from (a quarter, half, all of the other four folds), without demonstrations. DIR is a causal language
model of the transformers library; without it a tiny model of random weights is made, which shows that the path works
and nothing about quality. The generator without a language model stands beside both. An edit is the difference between
the flow before it and the flow that the model writes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings_sections import CausalLm
from opus_pipelines.flows.batches.scoring import alike_by, folds_of
from opus_pipelines.flows.from_text.flow_folder import FlowFolder, FlowTask, read_folder
from opus_pipelines.flows.from_text.generator import FlowWriter, learn
from opus_pipelines.flows.from_text.language_writers import ConstrainedWriter, FlowPrompter, made_by
from opus_pipelines.flows.from_text.predictions import predict
from opus_pipelines.flows.from_text.retrieval import Demonstrations
from opus_pipelines.flows.scores import task_score
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.language_models.adapters import Example, fit_adapter
from opus_pipelines.lwm.language_models.causal_model import LanguageModel, apply_adapter, load
from opus_pipelines.workflow.blocks.formats.python_ir import write_ir
from opus_pipelines.workflow.blocks.model import Flow
from opus_pipelines.workflow.metrics.plan_scores import interval
from tests.lwm.language_models.tiny_model import write_tiny_model

DEMONSTRATIONS = (0, 1, 3, 5)
SHARES = (0.25, 0.5, 1.0)
RETRIEVED = 10  # activities in a prompt, so that a tiny model's window holds it
Write = Callable[[FlowTask], Flow | None]


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--asked", type=int, help="tests of the fold that are asked at most")
    arguments = parser.parse_args(given)
    found = read_folder(arguments.folder)
    asked, teaching = next(folds_of(found.tasks))
    asked = asked[: arguments.asked]
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or write_tiny_model(Path(folder) / "tiny")
        settings = CausalLm(path=model, epochs=arguments.epochs, learning_rate=2e-4 if arguments.model else 0.01)
        print(f"{len(asked)} tests asked, {len(teaching)} may teach; model {arguments.model or 'tiny, random weights'}")
        curves(found, (asked, teaching), settings)
    return 0


def curves(found: FlowFolder, fold: tuple[Sequence[FlowTask], Sequence[FlowTask]], settings: CausalLm) -> None:
    asked, teaching = fold
    writer = learn(found.catalogue, teaching, Encoder())
    print("what                                exact semantic         activity F1   CPU s a flow   edits exact")
    row("without a language model", found, asked, lambda task: predict(writer, task).flow)
    model = loaded(settings)
    for count in DEMONSTRATIONS:
        row(f"{count} demonstrations", found, asked, by_model(prompter(writer, teaching, count), model))
    plain = prompter(writer, teaching, 0)
    for share in SHARES:
        taught = teaching[: max(1, round(share * len(teaching)))]
        weights = fit_adapter(loaded(settings), [example(plain, task) for task in taught], settings)
        adapted = apply_adapter(loaded(settings), weights, settings.lora_rank)
        row(f"LoRA on {len(taught)} flows", found, asked, by_model(plain, adapted))


def loaded(settings: CausalLm) -> LanguageModel:
    assert settings.path is not None
    return load(settings.path, settings.max_prompt_tokens)


def prompter(writer: FlowWriter, teaching: Sequence[FlowTask], shown: int) -> FlowPrompter:
    return FlowPrompter(writer, Demonstrations(teaching, writer.ranker.table.encoder), shown, RETRIEVED)


def example(plain: FlowPrompter, task: FlowTask) -> Example:
    assert task.expected is not None
    return Example(plain.prompt(task.utterance, task.prior), tuple(write_ir(task.expected).splitlines()))


def by_model(given: FlowPrompter, model: LanguageModel) -> Write:
    constrained = ConstrainedWriter(given, model)

    def written(task: FlowTask) -> Flow | None:
        try:
            return made_by(constrained, task.utterance, task.prior).flow
        except OpusError:
            return task.prior

    return written


def row(name: str, found: FlowFolder, asked: Sequence[FlowTask], written: Write) -> None:
    began = time.process_time()
    made = [written(task) for task in asked]
    seconds = (time.process_time() - began) / max(1, len(asked))
    alike = alike_by(Encoder())
    scores = [task_score(task, flow, found.catalogue, alike) for task, flow in zip(asked, made, strict=True)]
    exact = [float(one.exact_semantic) for one in scores]
    low, high = interval(exact, [task.uid for task in asked])
    f1 = sum(one.activity_f1 for one in scores) / len(scores)
    shown = f"{sum(exact) / len(exact):.3f} [{low:.3f}, {high:.3f}]   {f1:.3f}         {seconds:.2f}"
    edits = [value for task, value in zip(asked, exact, strict=True) if task.is_update]
    print(f"{name:<35} {shown}            {sum(edits):.0f} of {len(edits)}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
