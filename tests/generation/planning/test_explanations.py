"""What each review and each more expensive execution mode of a plan earns."""

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.planning.explanations import explain_choices
from opus_pipelines.generation.search.local_search import LocalSearch, PlanSpace, PlanState
from opus_pipelines.lwm.precedence import OrderFacts
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, TaskOrder, review_id

REVIEWER = TaskNode(
    "review", "review", "Review", p=0.98, q=0.7, cost_usd=0.8, duration_ms=1e6, actor_kind="human", kind="review"
)


def task(name: str, title: str) -> TaskNode:
    return TaskNode(name, name, title, p=0.6, q=0.1, cost_usd=1.0, duration_ms=1e6, actor_kind="code")


def test_a_review_names_its_task_also_where_another_id_is_its_beginning() -> None:
    modes = {"t1": (task("t1", "Register"),), "t12": (task("t12", "Pay"),)}
    ends = InputNode("input", "In", 0.95), OutputNode("output", "Out", 30.0)
    facts = OrderFacts(lambda pair: (5.0, 0.0))
    refiner = LocalSearch(PlanSpace(ends, modes, facts, Cost(), Reward(), (REVIEWER,)))
    reviewed = PlanState(TaskOrder.chain(("t1", "t12")), {review_id("t12"): 1})
    edits = explain_choices(refiner, refiner.evaluate_state(reviewed))
    assert [(edit.kind, edit.what) for edit in edits] == [("review", "review of 'Pay' by human")]
