"""The pages of the documentation and their fenced blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its page relative to the repository, its info string, its text."""

    page: str
    info: str
    text: str

    @property
    def lines(self) -> list[str]:
        """Its commands: the lines that are neither empty nor comments."""
        return [line.strip() for line in self.text.splitlines() if line.strip() and not line.strip().startswith("#")]

    @property
    def targets(self) -> list[str]:
        """The targets, where it calls nothing but make; else nothing."""
        words = [line.split("#")[0].split() for line in self.lines]
        return [w[1] for w in words] if all(w[0] == "make" for w in words) else []


def pages() -> list[str]:
    """Every page, relative to the repository."""
    return [*TOP, *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for match in _FENCE.finditer((ROOT / page).read_text("utf-8")):
        yield Block(page, match["info"].strip(), match["text"])
