"""Language models as generators and interpreters of a search, the Dagster asset, and learning curves in MLflow."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from opus_pipelines.core.settings import MLflow
from opus_pipelines.flows.programs.drafts import program_of
from opus_pipelines.flows.programs.executors import LanguageExecutor
from opus_pipelines.flows.programs.experiment import Plan, experiment, log_curves
from opus_pipelines.flows.programs.interpreter import run
from opus_pipelines.flows.programs.planning_set import MANUAL, toolbox
from opus_pipelines.flows.programs.records import task_of
from opus_pipelines.flows.programs.rewards import plan_of
from opus_pipelines.flows.programs.tools import Toolbox
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.language_models.text_answers import Question, TextAnswer
from opus_pipelines.lwm.training.tracking import Tracking
from opus_pipelines.workflow.blocks.formats.core_program import parse_core

WORDS = "Plan ::: process ::: Name the models. ::: next :: End\nEnd ::: terminal ::: Give the plan. :::\n"


@dataclass
class Says:
    """A model that always says the same."""

    text: str
    name: str = "says"
    version: str = "1"

    def ask(self, question: Question) -> TextAnswer:
        return TextAnswer(self.text, 1, 1)


@pytest.mark.parametrize(
    ("answer", "plan"),
    [
        ("First Image Denoising, then image_captioning.", ("image_denoising", "image_captioning")),
        ("Translation of the question answering", ("translation", "question_answering")),
        ("Nothing is needed", ()),
    ],
)
def test_the_plan_of_a_language_model_is_what_its_answer_names(answer: str, plan: tuple[str, ...]) -> None:
    assert plan_of(run(parse_core(WORDS), task_of("x"), LanguageExecutor(Says(answer), Toolbox()))) == plan


def test_an_answer_without_models_leaves_the_last_list_of_a_tool() -> None:
    text = (
        'a ::: process ::: call p = add_model(plan=plan, model="translation") ::: next :: e\ne ::: terminal ::: x :::'
    )
    from opus_pipelines.flows.programs.executors import ToolExecutor

    done = run(parse_core(text), task_of("x"), ToolExecutor(toolbox()))
    assert plan_of(done) == ("translation",)


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_learning_curves_are_in_mlflow(tmp_path: Path) -> None:
    plan = Plan(("random programs",), ("exact",), (0, 1), 8, most_tasks=5)
    done = experiment(program_of(MANUAL), plan)
    tracking = Tracking(Lake(tmp_path / "lake"), MLflow())
    log_curves(tracking, plan, done)
    found = tracking.client.get_experiment_by_name("opus")
    assert found is not None
    runs = tracking.client.search_runs([found.experiment_id])
    curves = {
        int(run.data.params["seed"]): [
            m.value for m in tracking.client.get_metric_history(run.info.run_id, "best_select")
        ]
        for run in runs
    }
    wanted = {seed: [p["best"] for p in done.curves if p["seed"] == seed] for seed in (0, 1)}
    assert curves == wanted
    assert {run.data.params["method"] for run in runs} == {"random programs"}
    assert all(run.data.metrics["best_report"] > 0 for run in runs)
