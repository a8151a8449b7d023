"""The lines that may follow those of a flow that are written: the grammar within which a causal model writes."""

from collections import Counter
from collections.abc import Sequence

from opus_pipelines.flows.from_text.user_tasks import user_task_text
from opus_pipelines.flows.text.clauses import STEP, clauses_of
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, quoted, write_ir
from opus_pipelines.workflow.blocks.model import Flow, read_before_set

MOST_LINES = 30  # of a new flow, and of what an edit adds
DEEPEST = 4  # blocks inside one another
END = "# end"
_BLOCKS = ("if ", "for ", "while ")


class LineGrammar:
    """The lines that may follow those that are written. Every text that it allows parses as a flow.

    A step of the prior flow or of the sketch may be written, once for each time that it stands there. Other steps call
    one of the names or are user tasks of the utterance. Headers are those of the prior flow and of the sketch, where
    steps that are written set what they read; the prior flow may read more.
    """

    def __init__(self, names: Sequence[str], sketch: Flow, prior: Flow | None, utterance: str) -> None:
        self._calls = list(names)
        before = _plain(prior) if prior else []
        headers = [line for line in (*before, *_plain(sketch)) if line.endswith(":") and line != "else:"]
        self._headers = list(dict.fromkeys(line for line in headers if line.startswith(_BLOCKS)))
        self._elifs = list(dict.fromkeys(line for line in headers if line.startswith("elif ")))
        steps = [Counter(line for line in lines if not line.endswith(":")) for lines in (before, _plain(sketch))]
        self._kept = steps[0] | steps[1]
        self._free = {name for _, name in read_before_set(prior)} if prior else set()
        self._taken = {line.partition(" = ")[0] for line in self._kept}
        self._deepest = max([DEEPEST, *(depth_of(line) for line in (write_ir(prior).splitlines() if prior else ()))])
        self.most_lines = MOST_LINES + len(before)
        clauses = [clause for clause in clauses_of(utterance) if clause.kind == STEP]
        self._tasks = list(dict.fromkeys(quoted(user_task_text(clause)) for clause in clauses))

    def lines(self, written: Sequence[str]) -> list[str]:
        """Returns the lines that may come next, END among them where the text is whole."""
        opened = bool(written) and written[-1].endswith(":")
        depth = depth_of(written[-1]) + opened if written else 0
        kept = list((self._kept - Counter(line.strip() for line in written)).keys())
        variable = self._variable(len(written) + 1)
        found: list[str] = []
        for level in [depth] if opened else range(depth, -1, -1):
            indent = "  " * level
            found += [f"{indent}{line}" for line in kept]
            found += [f"{indent}{variable} = {name}()" for name in self._calls]
            found += [f"{indent}{variable} = user_task({text})" for text in self._tasks]
            if level < self._deepest and len(written) < self.most_lines - 1:
                found += [line for h in self._headers if self._is_set(written, line := f"{indent}{h}")]
            if not opened and self._may_be_else(written, level):
                found += [f"{indent}else:"]
                found += [line for h in self._elifs if self._is_set(written, line := f"{indent}{h}")]
        return [*found, *([END] if not opened else [])]

    def closed(self, written: Sequence[str]) -> list[str]:
        """Returns the lines without headers at the end that have no body."""
        lines = list(written)
        while lines and lines[-1].endswith(":"):
            lines.pop()
        return lines

    def _is_set(self, written: Sequence[str], header: str) -> bool:
        """Whether a header reads only what steps before it set, and what the prior flow reads unset itself."""
        body = f"{header[: len(header) - len(header.lstrip())]}  last = user_task('x')"
        unset = {name for _, name in read_before_set(parse_ir("\n".join([*written, header, body])))}
        return unset <= self._free

    def _variable(self, number: int) -> str:
        while f"step_{number}" in self._taken:
            number += MOST_LINES
        return f"step_{number}"

    def _may_be_else(self, written: Sequence[str], level: int) -> bool:
        for line in reversed(written):
            if depth_of(line) <= level:
                return depth_of(line) == level and line.strip().startswith(("if ", "elif "))
        return False


def depth_of(line: str) -> int:
    """Returns the number of blocks around a line."""
    return (len(line) - len(line.lstrip(" "))) // 2


def _plain(flow: Flow) -> list[str]:
    return [line.strip() for line in write_ir(flow).splitlines()]
