"""The commands `opus program …`: run workflow programs (CoRE) on tasks, and improve them by reward."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import NearestCommand, Options
from opus_pipelines.core.errors import InputError

if TYPE_CHECKING:
    from opus_pipelines.flows.programs.interpreter import Executor, ProgramRun, ProgramTask

FILE = click.Path(path_type=Path, dir_okay=False)
SHOWN = 60  # characters of an answer in a table


@click.group(cls=NearestCommand)
def program() -> None:
    """Run workflow programs step by step, and improve them by reward (AutoFlow, arXiv 2407.12821).

    A program is a CoRE text (.core), or a flow in any format of `opus flow`.

    \b
    Example:
      opus program run plan.core --task "Given a noisy image, how to return the caption in German step by step?"
      opus program improve plan.core --calls 500 --seeds 3
    """


@program.command()
@click.argument("file", type=FILE)
@click.option("--task", "texts", multiple=True, metavar="TEXT", help="What is asked; may be repeated.")
@click.option("--tasks", "tasks_file", type=FILE, help="JSON Lines of tasks: {id, text, variables?}, one a line.")
@click.option(
    "--executor",
    type=click.Choice(["tools", "openai_compatible", "causal_lm"]),
    default="tools",
    show_default=True,
    help="What answers the steps.",
)
@click.option("--reads", type=click.Choice(["exact", "similar"]), default="exact", help="How tools read a task.")
@click.option("--max-rounds", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Steps of a run.")
@click.option("--client", help="The client whose task it is; its answers are forgotten with it.")
@click.option("--history", type=click.Path(path_type=Path, file_okay=False), help="Write the runs as a source, too.")
@click.option("--dry", is_flag=True, help="Write nothing into the lake.")
@click.pass_obj
def run(options: Options, /, file: Path, texts: tuple[str, ...], tasks_file: Path | None, **how: Any) -> None:
    """Run the program in FILE on tasks; the whole trace goes to the lake (programs_runs, programs_steps).

    The executor `tools` is deterministic: typed tools and conditions answer the steps. The others ask the language
    model of [openai_compatible] or [causal_lm]; an answer is kept by its content and asked for once. A run that does
    not end is stopped at --max-rounds and recorded all the same. A decision that nobody answers ends its run with an
    error that names the step; without a model, decisions in words are refused before anything runs. --history writes a
    folder with source.toml that `opus rebuild` reads like any other history.

    \b
    Example:
      opus program run plan.core --task "Given a noisy image, how to return the caption in German step by step?"
      opus program run plan.core --tasks tasks.jsonl --executor openai_compatible --history history/programs
      opus query program_steps
    """
    from opus_pipelines.flows.programs.executors import ToolExecutor
    from opus_pipelines.flows.programs.interpreter import run as run_program
    from opus_pipelines.flows.programs.records import publish_runs, read_program, read_tasks, task_of, write_history

    chosen = read_program(file)
    tasks = [*(task_of(text) for text in texts), *(read_tasks(tasks_file) if tasks_file else ())]
    if not tasks:
        raise click.UsageError("say with --task or --tasks what the program is to do")
    executor = _executor(options, how["executor"], how["reads"], how["client"] or "")
    if isinstance(executor, ToolExecutor):
        executor.check(chosen)
    runs = [run_program(chosen, task, executor, how["max_rounds"]) for task in tasks]
    if not how["dry"]:
        lake = options.lake()
        with lake.lock():
            publish_runs(lake, runs, file.stem, how["client"])
    if how["history"]:
        labels = {"industry": "workflow programs"} | ({"client": how["client"]} if how["client"] else {})
        write_history(how["history"], runs, labels)
        click.echo(f"history written: {how['history']}", err=True)
    _print(runs, tasks)
    for done in runs:
        if done.undecided:
            raise InputError(
                f"task {done.task_id}: the decision {done.undecided} has no answer that means one of its branches; "
                f"the answer was {done.answer[:SHOWN]!r}"
            )


@program.command()
@click.argument("file", type=FILE, required=False)
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(["policy gradient", "random programs"]),
    help="How programs are proposed; may be repeated. Default: both.",
)
@click.option(
    "--interpreter",
    "interpreters",
    multiple=True,
    type=click.Choice(["exact", "similar"]),
    help="What carries programs out: exact tools, or such that misread some tasks; may be repeated. Default: exact.",
)
@click.option("--calls", type=click.IntRange(min=2), default=2_000, show_default=True, help="Calls of the reward.")
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="Seeds of each method.")
@click.option("--reward", default="task_score", show_default=True, help="Name of the reward.")
@click.option("--most-tasks", type=click.IntRange(min=1), help="Use at most so many tasks of each half.")
@click.option("-o", "--output", type=FILE, help="Write the program that is best on the tasks to select on.")
@click.pass_obj
def improve(options: Options, /, file: Path | None, output: Path | None, **how: Any) -> None:
    """Improve the program in FILE by reward on the planning set, beside a control with the same number of calls.

    Without FILE the search begins at the manual program of the set. Tasks are split by their ids: rewards of one half
    select, the other half is asked for once, at the end. The table has the mean over seeds with its 95 % interval.
    Rows go to the lake (programs_searches, programs_curves), learning curves to MLflow.

    \b
    Example:
      opus program improve plan.core --calls 500 --seeds 3 -o better.core
      opus program improve --method "random programs" --interpreter exact --interpreter similar
      opus query programs
    """
    from opus_pipelines.flows.programs.drafts import program_of
    from opus_pipelines.flows.programs.experiment import Plan, experiment, log_curves, publish_experiment
    from opus_pipelines.flows.programs.planning_set import MANUAL
    from opus_pipelines.flows.programs.records import read_program
    from opus_pipelines.lwm.training.tracking import Tracking

    begin = read_program(file) if file else program_of(MANUAL)
    chosen = {name: how[name] for name in ("methods", "interpreters") if how[name]}
    plan = Plan(
        **chosen,
        seeds=tuple(range(how["seeds"])),
        calls=how["calls"],
        reward=how["reward"],
        most_tasks=how["most_tasks"],
    )
    done = experiment(begin, plan, show.note)
    lake = options.lake()
    with lake.lock():
        publish_experiment(lake, done)
        log_curves(Tracking(lake, options.settings().mlflow), plan, done)
    _print_summaries(done.searches)
    if output:
        best = max(done.searches, key=lambda row: row["best_select"])
        output.write_text(best["after"], "utf-8")
        show.note(f"the best program on the tasks to select on: {output}")


def _print_summaries(rows: list[dict[str, Any]]) -> None:
    from opus_pipelines.flows.programs.experiment import summaries

    table = [
        (
            one.interpreter,
            one.method,
            one.seeds,
            f"{one.calls:,}",
            f"{one.before:.3f}",
            f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]",
            f"{one.best_share:.3f}",
            "-" if one.relative_gain is None else f"{one.relative_gain:+.1%}",
            f"{one.valid_share:.3f}",
        )
        for one in summaries(rows)
    ]
    columns = ("interpreter", "method", "seeds", "calls", "before", "after, held out", "of optimum", "gain", "valid")
    show.table(columns, table, "Reward on held-out tasks")


def _executor(options: Options, name: str, reads: str, client: str) -> "Executor":
    from opus_pipelines.flows.programs.planning_set import toolbox

    if name == "tools":
        from opus_pipelines.flows.programs.executors import ToolExecutor
        from opus_pipelines.flows.programs.interpreter import letter_cosine

        return ToolExecutor(toolbox(reads), letter_cosine)
    from opus_pipelines.flows.programs.executors import LanguageExecutor
    from opus_pipelines.lwm.language_models.text_answers import TEXT_MODELS, KeptText

    lake = options.lake()
    return LanguageExecutor(KeptText(TEXT_MODELS[name](options.settings(), lake), lake, client), toolbox(reads))


def _print(runs: Sequence["ProgramRun"], tasks: Sequence["ProgramTask"]) -> None:
    if len(runs) == 1:
        visits = [
            (v.round, v.step.name, v.outcome.tool or "", v.outcome.answer[:SHOWN], v.outcome.status, v.next_step or "")
            for v in runs[0].visits
        ]
        show.table(("round", "step", "tool", "answer", "status", "next"), visits, f"Run {runs[0].id}")
    rows = [(task.id, run.status, len(run.visits), run.answer[:SHOWN]) for task, run in zip(tasks, runs, strict=True)]
    show.table(("task", "status", "rounds", "answer"), rows)
