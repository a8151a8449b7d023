"""What docs/install.md says of the install without CUDA: the packages left out are those that only PyTorch's CUDA
build needs.
"""

import re
from importlib.metadata import distributions

from tests.docs.pages import ROOT, blocks

NAME = re.compile(r"[A-Za-z0-9._-]+")


def plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def test_only_torch_needs_what_the_cpu_install_leaves_out() -> None:
    install = next(block for block in blocks("docs/install.md") if "grep -vE" in block.text)
    pattern = re.search(r"grep -vE '([^']+)'", install.text)
    assert pattern is not None
    assert f"grep -vE '{pattern[1].replace('$', '$$')}'" in (ROOT / "Makefile").read_text()
    pins = [
        line
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    ]
    left_out = {plain(pin.split("==")[0]) for pin in pins if re.search(pattern[1], pin)}
    assert {"triton", "cuda-toolkit", "nvidia-cublas"} <= left_out
    needing = {
        plain(d.metadata["Name"])
        for d in distributions()
        for required in d.requires or ()
        if "extra ==" not in required
        for name in NAME.findall(required)[:1]
        if plain(name) in left_out
    }
    assert needing - left_out == {"torch"}
