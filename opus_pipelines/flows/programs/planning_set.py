"""A planning set like OpenAGI's, made by its typed chain (AutoFlow 1.9): every task and its best plan are known.

A task asks for an image to be repaired, described or translated, or for a text to be read or drawn; a plan is a list of
models. The set is invented; the kinds of models are those of OpenAGI. A plan has a score only where its chain of types
is right: the first model takes the task's input, each takes what the one before gives, and the last gives the task's
output. The optimum of every task is 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise

from opus_pipelines.core.ids import digest
from opus_pipelines.flows.programs.drafts import ALWAYS, Bank, Draft, Item
from opus_pipelines.flows.programs.interpreter import ProgramTask, letter_cosine
from opus_pipelines.flows.programs.tools import Tool, Toolbox, TypedValue

IMAGE, TEXT = "image", "text"
MODELS: dict[str, tuple[str, str]] = {
    "image_denoising": (IMAGE, IMAGE),
    "image_deblurring": (IMAGE, IMAGE),
    "colorization": (IMAGE, IMAGE),
    "super_resolution": (IMAGE, IMAGE),
    "image_captioning": (IMAGE, TEXT),
    "object_detection": (IMAGE, TEXT),
    "image_classification": (IMAGE, TEXT),
    "visual_question_answering": (IMAGE, TEXT),
    "fill_mask": (TEXT, TEXT),
    "summarization": (TEXT, TEXT),
    "translation": (TEXT, TEXT),
    "sentiment_analysis": (TEXT, TEXT),
    "text_generation": (TEXT, TEXT),
    "question_answering": (TEXT, TEXT),
    "text_to_image": (TEXT, IMAGE),
}
DEFECTS = {
    "noisy": "image_denoising",
    "blurry": "image_deblurring",
    "grayscale": "colorization",
    "low resolution": "super_resolution",
}
OF_IMAGES = {
    "caption": "image_captioning",
    "objects": "object_detection",
    "class": "image_classification",
    "answer about the picture": "visual_question_answering",
}
OF_TEXTS = {
    "summary": "summarization",
    "sentiment": "sentiment_analysis",
    "continuation": "text_generation",
    "answer from the passage": "question_answering",
    "drawing": "text_to_image",
}
# Phrases that a program may ask for: those that decide something, and those that stand in texts without deciding.
PHRASES = (
    *DEFECTS,
    *OF_IMAGES,
    *OF_TEXTS,
    "gaps",
    "in German",
    "image",
    "text",
    "given",
    "return",
    "step by step",
    "regular",
    "in English",
    "how to",
)
VALID_SHARE = 0.25  # of the score that a right chain of types alone has


@dataclass(frozen=True)
class PlanningTask:
    """A task: its text, the types of its input and output, and the models that its best plan has, in an order."""

    text: str
    takes: str
    gives: str
    needed: tuple[str, ...]

    @property
    def id(self) -> str:
        """A hash of the text."""
        return digest("planning", self.text)[:12]

    @cached_property
    def program_task(self) -> ProgramTask:
        """The task as a run gets it: the text and an empty plan; neither types nor the best plan."""
        return ProgramTask(self.id, self.text, {"task": TypedValue("text", self.text), "plan": TypedValue("list", ())})


def tasks() -> tuple[PlanningTask, ...]:
    """Returns all 163 tasks in a fixed order."""
    found = []
    for number in range(len(DEFECTS) + 1):
        for defects in combinations(DEFECTS, number):
            given = f"Given a {' and '.join(defects)} image" if defects else "Given an image"
            repairs = tuple(DEFECTS[defect] for defect in defects)
            if defects:
                found.append(
                    PlanningTask(f"{given}, how to return the regular image step by step?", IMAGE, IMAGE, repairs)
                )
            for goal, model in OF_IMAGES.items():
                for language, after in (("in English", ()), ("in German", ("translation",))):
                    text = f"{given}, how to return the {goal} {language} step by step?"
                    found.append(PlanningTask(text, IMAGE, TEXT, (*repairs, model, *after)))
    for gaps, before in (("a text", ()), ("a text with gaps", ("fill_mask",))):
        found.append(PlanningTask(f"Given {gaps}, how to return it in German?", TEXT, TEXT, (*before, "translation")))
        for goal, model in OF_TEXTS.items():
            for language, after in (("in English", ()), ("in German", ("translation",))):
                gives = MODELS[model][1]
                if gives == IMAGE and after:
                    continue
                text = f"Given {gaps}, how to return the {goal} {language} step by step?"
                found.append(PlanningTask(text, TEXT, gives, (*before, model, *after)))
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def is_valid(task: PlanningTask, plan: tuple[str, ...]) -> bool:
    """Returns whether the chain of types is right (OpenAGI's rule)."""
    if not plan or any(model not in MODELS for model in plan):
        return False
    ends = MODELS[plan[0]][0] == task.takes and MODELS[plan[-1]][1] == task.gives
    return ends and all(MODELS[a][1] == MODELS[b][0] for a, b in pairwise(plan))


@lru_cache(maxsize=1 << 18)
def plan_score(task: PlanningTask, plan: tuple[str, ...]) -> float:
    """Returns the score of a plan from 0 to 1: 0 for a wrong chain, else a quarter and three quarters of its F1.

    The F1 is that of the models against the needed ones; a model after one that must follow it does not count.
    """
    if not is_valid(task, plan):
        return 0.0
    right = 0
    for place, model in enumerate(plan):
        if model in task.needed and model not in plan[:place]:
            later = task.needed[task.needed.index(model) + 1 :]
            moves = model in DEFECTS.values()
            right += moves or not any(other in plan[:place] for other in later)
    f1 = 2 * right / (len(plan) + len(task.needed))
    return VALID_SHARE + (1 - VALID_SHARE) * f1


def split(every: Sequence[PlanningTask]) -> tuple[tuple[PlanningTask, ...], tuple[PlanningTask, ...]]:
    """Returns the tasks to select on and those to report on, half and half by the hash of their ids."""
    ordered = sorted(every, key=lambda task: digest("split", task.id))
    half = len(ordered) // 2
    chosen = set(ordered[:half])
    return tuple(t for t in every if t in chosen), tuple(t for t in every if t not in chosen)


def toolbox(reads: str = "exact") -> Toolbox:
    """Returns the tools of the set. `reads`: how a phrase is found in a task, exact or similar (letters, like a small
    model that errs).
    """
    mentions = {"exact": _mentions, "similar": _resembles}[reads]
    return Toolbox(
        (
            Tool(
                "mentions",
                "Yes where the task mentions the phrase",
                mentions,
                {"task": "text", "phrase": "text"},
                seconds=0,
                version=1 if reads == "exact" else 2,
            ),
            Tool(
                "add_model",
                "the plan with a model at its end",
                lambda plan, model: (*plan, model),
                {"plan": "list", "model": "text"},
                "list",
                seconds=0,
            ),
        )
    )


def bank() -> Bank:
    """Returns what programs of the set may be made of."""
    kinds = sorted(set(MODELS.values()))
    changing = frozenset(kinds.index(types) for types in kinds if types[0] != types[1])
    return Bank((ALWAYS, *PHRASES), tuple(MODELS), tuple(kinds.index(types) for types in MODELS.values()), changing)


# What a person wrote who saw a few tasks: it leaves out the rarer defects and goals.
MANUAL: Draft = (
    Item("noisy", "image_denoising"),
    Item("grayscale", "colorization"),
    Item("caption", "image_captioning"),
    Item("summary", "summarization"),
    Item("in German", "translation"),
)


def _mentions(task: str, phrase: str) -> str:
    return "Yes" if phrase.lower() in task.lower() else "No"


def _resembles(task: str, phrase: str) -> str:
    words, size = task.split(), len(phrase.split())
    parts = [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]
    return "Yes" if max((letter_cosine(part, phrase) for part in parts), default=0.0) >= 0.25 else "No"
