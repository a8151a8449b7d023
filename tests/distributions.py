"""Installs distributions that add one thing to the package, as people do from outside."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

Install = Callable[..., Path]


@contextmanager
def installed(folder: Path, name: str, entries: str, code: str = "") -> Iterator[Path]:
    """Installs a distribution of version 1.2 with one module of its name and the text of its entry points.

    Processes that are started meanwhile have it too. Gives the folder that it is installed in.
    """
    site = folder / name
    info = site / f"{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(entries)
    (site / f"{name}.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
        yield site
    sys.modules.pop(name, None)


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    """Installs distributions until the test ends."""
    with ExitStack() as stack:
        yield lambda name, entries, code="": stack.enter_context(installed(tmp_path, name, entries, code))
