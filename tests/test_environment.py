"""The settings of whoever runs the tests reach no test: conftest.py clears every OPUS_* variable."""

import os
import subprocess
import sys


def test_no_setting_of_the_environment_reaches_the_tests() -> None:
    assert [name for name in os.environ if name.startswith("OPUS_") and name != "OPUS_TEST_DATA"] == []


def test_no_setting_of_the_environment_reaches_a_subprocess() -> None:
    code = "import os; print([name for name in os.environ if name.startswith('OPUS_') and name != 'OPUS_TEST_DATA'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
