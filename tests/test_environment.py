"""What conftest.py prepares: no setting of the environment reaches a test, and the profiles of make are registered."""

import os
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import settings


def test_no_setting_of_the_environment_reaches_the_tests() -> None:
    assert [name for name in os.environ if name.startswith("OPUS_") and name != "OPUS_TEST_DATA"] == []


def test_no_setting_of_the_environment_reaches_a_subprocess() -> None:
    code = "import os; print([name for name in os.environ if name.startswith('OPUS_') and name != 'OPUS_TEST_DATA'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_profile_that_make_names_is_registered_by_conftest() -> None:
    """A profile that a test module registers comes too late: pytest asks for it before it collects."""
    root = Path(__file__).parents[1]
    named = re.findall(r'--hypothesis-profile "?(\w+(?: \w+)?)"? -m', (root / "Makefile").read_text())
    assert named == ["inner loop", "nightly"]
    assert all(settings.get_profile(name) for name in named)
    registered = re.findall(r'register_profile\("([^"]+)"', (root / "tests" / "conftest.py").read_text())
    assert set(named) <= set(registered)
