"""Workflows of every shape: chains, branches, several inputs and outputs, reviews, titles that a file must
not trust.
"""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st

from opus_pipelines.workflow.files import (
    AnnotatedWorkflow,
    InputEntry,
    OutputEntry,
    Penalties,
    TaskEntry,
    Weights,
    WorkflowFile,
)

HOSTILE = "</title><script>alert(\"x\")</script> & 'q' ]]> %%{init}%% <b>"
TITLES = ("Pay", "請求書を確認", "تسجيل", HOSTILE, "W" * 60, "two\nlines", " spaces ", "😀")
# What XML holds, so that it comes back as it was.
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12) | st.sampled_from(TITLES)
SHARES = st.floats(0, 1)
AMOUNTS = st.floats(0, 1e9)


@st.composite
def files(draw: Any) -> WorkflowFile:
    """Any workflow file of at most seven tasks; edges lead forward."""
    ids = [f"{draw(st.sampled_from(['a', 't~', 'é ', '<']))}{i}" for i in range(draw(st.integers(0, 7)))]
    tasks = tuple(draw(tasks_of(i)) for i in ids)
    inputs = tuple(
        InputEntry(id=f"in{i}", title=draw(WORDS), prior=draw(SHARES)) for i in range(draw(st.integers(0, 3)))
    )
    outputs = tuple(
        OutputEntry(id=f"out{i}", title=draw(WORDS), gain_usd=draw(AMOUNTS)) for i in range(draw(st.integers(0, 2)))
    )
    before = [n.id for n in inputs] + ids
    pairs = [p for p in itertools.combinations(before, 2) if p[1] in ids]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)) if pairs else []
    if outputs and not before:
        outputs = ()
    edges += [(draw(st.sampled_from(before)), n.id) for n in outputs]
    weights = Weights(alpha=draw(SHARES), usd_per_held={"desk": draw(AMOUNTS)}) if draw(st.booleans()) else None
    return WorkflowFile(
        title=draw(WORDS), weights=weights, inputs=inputs, tasks=tasks, outputs=outputs, edges=tuple(edges)
    )


def tasks_of(ident: str) -> st.SearchStrategy[TaskEntry]:
    return st.builds(
        TaskEntry,
        id=st.just(ident),
        kind=st.sampled_from(["task", "review"]),
        title=WORDS,
        description=st.none() | WORDS,
        task_id=st.none() | WORDS,
        inputs=st.lists(WORDS, max_size=2),
        outputs=st.lists(WORDS, max_size=2),
        instructions=st.lists(WORDS, max_size=3),
        actor_kind=st.sampled_from([None, "human", "model", "code", "robot"]),
        actor_group=st.none() | st.sampled_from(["Refund team", "Client"]),
        p=SHARES,
        q=SHARES,
        cost_usd=st.none() | AMOUNTS,
        cost_human_usd=st.none() | AMOUNTS,
        duration_ms=AMOUNTS,
        memory_gb=AMOUNTS,
        p_basis=st.sampled_from(["observed", "prior"]),
        consumes=st.dictionaries(WORDS, AMOUNTS, max_size=2),
        scores=st.none() | st.builds(Penalties, cohesion=SHARES, hygiene=SHARES),
    )


def refund(title: str = "Refund desk") -> AnnotatedWorkflow:
    """Two inputs, two outputs, a review, branches that join again, one that leads nowhere."""
    tasks = (
        TaskEntry(
            id="a",
            title="Read mail",
            actor_kind="model",
            model="quill-2",
            cost_usd=0.1,
            duration_ms=2000.0,
            inputs=("mail",),
            outputs=("facts",),
            instructions=("Read it.", "Write facts."),
            p=0.95,
            q=0.1,
            description="Facts from a mail.",
        ),
        TaskEntry(id="b", title=title, actor_kind="code", cost_usd=0.002, duration_ms=300.0, outputs=("record",)),
        TaskEntry(
            id="c",
            title="Decide",
            actor_kind="human",
            actor_group="Refund team",
            cost_usd=2.5,
            duration_ms=300_000.0,
            inputs=("facts", "record"),
            p=0.97,
            q=0.2,
            p_basis="observed",
        ),
        TaskEntry(
            id="r",
            kind="review",
            title="Second look",
            actor_kind="human",
            cost_usd=1.5,
            duration_ms=120_000.0,
            p=0.99,
            q=0.8,
        ),
        TaskEntry(id="d", title="Pay", actor_kind="code", cost_usd=0.002, duration_ms=500.0),
        TaskEntry(id="e", title="Log it", duration_ms=100.0),
    )
    file = WorkflowFile(
        title=title,
        inputs=(InputEntry(id="mail", title="Mail", prior=0.9), InputEntry(id="order", title="Order")),
        tasks=tasks,
        outputs=(OutputEntry(id="o", title="Answer", gain_usd=20.0), OutputEntry(id="m", title="Money", gain_usd=5.0)),
        edges=(
            ("mail", "a"),
            ("order", "b"),
            ("a", "c"),
            ("b", "c"),
            ("b", "e"),
            ("c", "r"),
            ("r", "d"),
            ("a", "o"),
            ("d", "o"),
            ("d", "m"),
        ),
    )
    return AnnotatedWorkflow(
        file,
        "f1",
        {"a": 0.0, "c": 2000.0},
        {"c": 302_000.0},
        {"a": 231, "c": 1},
        {"r": "review"},
        {("a", "c"): "facts"},
    )


@pytest.fixture
def faces() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(files=files, refund=refund, hostile=HOSTILE)
