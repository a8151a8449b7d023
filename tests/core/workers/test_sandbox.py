"""A forked child is only safe in a process of one thread: each test asks such a process."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.workers.poison import gone

SCRIPT = """
import json, os, sys, time
from opus_pipelines.core.workers.sandbox import LostWorker, Sandbox

def work(item):
    if item == "hangs":
        time.sleep(60)
    if item == "eats":
        return len([bytearray(1 << 20) for _ in range(2000)])
    if item == "dies":
        os.kill(os.getpid(), 9)
    if item == "leaves":
        os._exit(3)
    if item == "raises":
        raise ValueError("no such thing")
    if item == "large":
        return "x" * (8 << 20)
    return item * 2

said = []
with Sandbox(work, seconds=2.0, memory_mb=256) as sandbox:
    for item in json.loads(sys.argv[1]):
        try:
            said.append(sandbox.do(item))
        except LostWorker as lost:
            said.append(f"lost: {lost}")
children = os.path.exists(f"/proc/{os.getpid()}/task") and open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
print(json.dumps([said[i][:80] if isinstance(said[i], str) else said[i] for i in range(len(said))] + [children]))
"""


def done(*items: Any) -> Any:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(items)], capture_output=True, text=True, timeout=100, check=True
    )
    return json.loads(found.stdout)


@pytest.mark.long
@pytest.mark.parametrize(
    ("poison", "reason"),
    [
        ("hangs", "lost: it took more than 2 s (generation.seconds_per_intake)"),
        ("eats", "lost: it needed more than 256 MB (generation.memory_mb_per_intake)"),
        ("dies", "lost: its process was ended by signal 9"),
        ("leaves", "lost: its process ended with 3"),
        ("raises", "lost: ValueError: no such thing"),
    ],
)
def test_a_poisonous_item_costs_only_itself_and_leaves_no_child(poison: Any, reason: Any) -> None:
    assert done("a", poison, "b") == ["aa", reason, "bb", []]


def test_a_large_answer_comes_back_whole() -> None:
    assert done("large", "c") == ["x" * 80, "cc", []]


ORPHANS = """
import os, signal, sys, time
from opus_pipelines.core.workers.sandbox import LostWorker, Sandbox

def work(item):
    if item == "hangs":
        print(os.getpid(), flush=True)
        time.sleep(600)
    return item

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with SIGINT ignored
with Sandbox(work, 600, 256) as first, Sandbox(work, 600, 256) as second:
    second.do("a")
    first.do("b")
    second.do("hangs")
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_child_that_hangs_dies_with_its_parent(how: Any) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout
        child = parent.stdout.readline().strip()
        assert Path("/proc", child).is_dir()
        parent.send_signal(how)
        try:
            parent.wait(30)
        finally:
            parent.kill()  # the end of `with` would wait for ever
    assert gone(child)


RAISES = """
from opus_pipelines.core.errors import InputError
from opus_pipelines.core.workers.sandbox import LostWorker, Sandbox

def work(item):
    raise InputError("intake.toml: no such key")

with Sandbox(work, 60, 256) as sandbox:
    try:
        sandbox.do("a")
    except LostWorker as lost:
        print(lost)
"""


def test_what_is_said_for_a_person_comes_back_in_its_own_words() -> None:
    found = subprocess.run([sys.executable, "-c", RAISES], capture_output=True, text=True, timeout=100, check=True)
    assert found.stdout == "intake.toml: no such key\n"
