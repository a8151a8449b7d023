"""The verdict on an Intention: may a person act on its first workflow? It is made here, and shown everywhere else.

clear: the first workflow is the best of all that were ranked, cases of history are like the request, all documents
were read, and all their rules are applied. rule at risk: the workflow does what is demanded, and will hardly keep a
deadline. not answered: nothing of the request could be compared with cases, so that the first workflow is the usual
path of the process and no answer to this request. undecided: anything else. The reasons say what takes "clear" away.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.generation.planning.context import Candidate
from opus_pipelines.generation.records import Ranked
from opus_pipelines.generation.refusals import elsewhere
from opus_pipelines.intakes.documents.document import PARTIAL, UNSURE
from opus_pipelines.intakes.elements import COMPARED_ONLY, NAMED_ONLY, READ_ONLY, Element
from opus_pipelines.lwm.retrieval.similar_cases import ALL_CASES

CLEAR, UNDECIDED, AT_RISK, NOT_ANSWERED = "clear", "undecided", "rule at risk", "not answered"
USUAL_PATH = (
    "nothing of the request could be compared with cases: this is the usual path of the process, and no answer to this "
    "request; texts or attributes of the cases, or the names of steps in the request, would tell more"
)
_LANGUAGE = re.compile(r"written in (\w+(?: and \w+)*)")
_NO_TEXT_LAYER = "without a text layer"


@dataclass(frozen=True)
class ExpectedSuccess:
    """The success to expect, and what it rests on: steps, similar cases, or cases of the process; None: nothing."""

    success: float | None
    basis: str | None

    @classmethod
    def of(cls, of_steps: float | None, result: Ranked) -> "ExpectedSuccess":
        """Returns the estimate from the steps, held against what happened in cases that are like it at the start.

        Steps that only successful cases have, such as a payment, make the estimate of the steps too high: where it is
        above the interval of these cases, their share is expected. Where nothing of the request can be compared with
        cases, that share is the base rate of the process.
        """
        at_start = result.at_start
        if at_start is None:
            return cls(of_steps, None if of_steps is None else "steps")
        if at_start.basis == ALL_CASES:
            return cls(at_start.success, "cases of the process")
        if of_steps is None or of_steps > at_start.interval[1]:
            return cls(at_start.success, "similar cases")
        return cls(of_steps, "steps")


@dataclass(frozen=True)
class Verdict:
    """The verdict and its reasons; none where it is clear."""

    name: str
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, best: Candidate, result: Ranked, lacks: int, expected: ExpectedSuccess) -> "Verdict":
        """Returns the verdict on an Intention by its first workflow.

        `lacks` counts the statements of the intake's own procedure for which the workflow has no step.
        """
        usual = USUAL_PATH if result.evidence.completeness.basis == ALL_CASES else None
        other = elsewhere(result.request.intake.elements)
        reasons = (
            other.text if other else None,
            usual,
            *best.violations,
            result.evidence.completeness.undecided_reason,
            _unread(result.request.intake.elements),
            *(result.evidence.procedure.doubts if result.evidence.procedure else ()),
            _counted(result.context.requirements.rules.not_applied, "rule", "of the documents not applied"),
            _counted(lacks, "statement", "of the procedure without a step"),
            _too_high(best, expected),
            _not_best(best, result),
        )
        name = AT_RISK if best.risks else NOT_ANSWERED if usual else UNDECIDED if any(reasons) else CLEAR
        return cls(name, tuple(filter(None, reasons)))


def unread_documents(elements: Sequence[Element]) -> list[str]:
    """Returns the documents of which all or a part was not read or not understood, each with the reason in a word."""
    return [f"{e.name} ({why})" for e in elements if (why := _why_unread(e)) is not None]


def _why_unread(element: Element) -> str | None:
    for part in (element.left_out or "").split("; "):
        if language := _LANGUAGE.search(part):
            return language[1]
        if part.endswith((READ_ONLY, NAMED_ONLY, COMPARED_ONLY)):
            return "another language"
        if _NO_TEXT_LAYER in part or PARTIAL.split("; ", maxsplit=1)[0] in part:
            return "scan"
        if UNSURE in part:
            return "unsure scan"
    return "not readable" if element.left_out and element.text is None else None


def _unread(elements: Sequence[Element]) -> str | None:
    unread = unread_documents(elements)
    return f"{len(unread)} of {len(elements)} documents not read: {', '.join(unread)}" if unread else None


def _counted(number: int, what: str, which: str) -> str | None:
    return f"{number} {what}{'' if number == 1 else 's'} {which}" if number else None


def _too_high(best: Candidate, expected: ExpectedSuccess) -> str | None:
    """Returns why the estimate of the steps is not believed, None where it is."""
    of_steps = best.evaluation.success_probability
    if expected.basis != "similar cases" or expected.success is None:
        return None
    return (
        f"its steps alone would succeed with {of_steps:.1%}, and of the cases that are like it at the start "
        f"{expected.success:.1%} succeeded"
        if of_steps > expected.success
        else None
    )


def _not_best(best: Candidate, result: Ranked) -> str | None:
    """Returns why the ranking does not show that the first workflow is the best one; None where it does."""
    if len(result.ranked) < 2:
        return "no other workflow was found that it could be compared with"
    share = best.confidence.best_share if best.confidence else 0.0
    if share >= result.context.settings.reward.clear_share:
        return None
    return f"it is the best of all ranked with probability {share:.2f} alone"
