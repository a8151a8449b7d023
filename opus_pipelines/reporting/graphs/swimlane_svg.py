"""Draws one workflow as a standalone SVG: a lane for each actor, time from top to bottom, reviews, costs and bases.

It has no script, no style sheet and nothing external, and every text is escaped. Equal workflows give equal bytes.
"""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from opus_pipelines.core.formatting import chance, clean, hours, usd
from opus_pipelines.reporting.graphs import model
from opus_pipelines.reporting.graphs.model import GROUPS, LINE, OTHER, PAPER, QUIET, Box, Colour, Point
from opus_pipelines.reporting.graphs.svg import document, number, rectangle, text_at
from opus_pipelines.workflow.files import CLIENT, AnnotatedWorkflow, TaskEntry
from opus_pipelines.workflow.formats.swimlane_layout import Geometry, Size, geometry, grid

WIDTH, PADDING, AXIS, HEAD, MARGIN, LEAST_LANE = 184.0, 8.0, 74.0, 30.0, 16.0, 100.0
TITLE, TITLE_LINE, FIGURES, FIGURES_LINE = 12.0, 15.0, 10.5, 14.0
WORDS, MOST_LINES = 270.0, 5  # of what stands at the end of an edge


def swimlane_svg(described: AnnotatedWorkflow) -> str:
    """Returns the text of the SVG file of a workflow."""
    drawn = _Drawing(described)
    label = f"{described.title}: {len(described.tasks)} steps by {len(described.lanes())} actors"
    body = [*drawn.lanes(), *drawn.clock(), *drawn.edges(), *drawn.nodes()]
    return document(described.title, drawn.width, drawn.height, body, f" aria-label={quoteattr(clean(label))}")


class _Drawing:
    """Computes the place of everything; along the flow is down, across it to the right."""

    def __init__(self, described: AnnotatedWorkflow) -> None:
        self._of = described
        self._order = described.workflow.topological()
        self._names = described.lanes()
        edges = list(described.workflow.edges)
        self._lines = {n: model.wrap(described.title_of(n), TITLE, WIDTH - 2 * PADDING, 3) for n in self._order}
        size = {n: self._size(n) for n in self._order}
        placement = grid(self._order, edges, lambda n: self._names.index(described.lane_of(n)), len(self._names))
        self._rank = placement.rank
        self._texts = self._words_above(edges)
        above = {node: FIGURES_LINE * len(lines) + 4 for node, lines in self._texts.items()}
        self._axis = (
            AXIS if any(described.start_ms.values()) else 0.0
        )  # the first step begins at 0 even where no time is known
        self._placed: Geometry = geometry(placement, edges, size, above)
        self._size_of = size
        lanes = MARGIN + self._axis + (self._placed.lanes[-1][1] if self._placed.lanes else LEAST_LANE)
        self.width = MARGIN + max([lanes, *(x + model.width(lines, FIGURES) for x, _, lines, _ in self._labels())])
        self.height = MARGIN * 2 + HEAD + self._placed.length + MARGIN
        self._colours = {
            name: GROUPS[i] if i < len(GROUPS) else OTHER
            for i, name in enumerate(n for n in self._names if n != CLIENT)
        }

    def _size(self, node: str) -> Size:
        lines = len(self._lines[node])
        extra = 2 * FIGURES_LINE if node in self._of.tasks else 0.0
        review = FIGURES_LINE if self._is_review(node) else 0.0
        return Size(2 * PADDING + TITLE_LINE * lines + extra + review, WIDTH)

    def _is_review(self, node: str) -> bool:
        task = self._of.tasks.get(node)
        return task is not None and task.kind == "review"

    def _point(self, place: Point) -> Point:
        along, across = place
        return MARGIN + self._axis + across, MARGIN + HEAD + MARGIN / 2 + along

    def lanes(self) -> Iterator[str]:
        """Yields a column for each actor, with its name on top."""
        bottom = self.height - MARGIN
        for i, (name, (begins, ends)) in enumerate(zip(self._names, self._placed.lanes, strict=True)):
            x, width = MARGIN + self._axis + begins, ends - begins
            shade = ' fill="#f4f6f8"' if i % 2 == 0 else f' fill="{PAPER}"'
            yield rectangle(Box(x, MARGIN, width, bottom - MARGIN), f'{shade} stroke="#d5dae0"')
            shown_name = model.shorten(clean(name), TITLE, width - 2 * PADDING)
            yield text_at(x + width / 2, MARGIN + 20, shown_name, TITLE, ' font-weight="600" text-anchor="middle"')

    def clock(self) -> Iterator[str]:
        """Yields the start times of each row, at the left."""
        rows: dict[int, list[float]] = {}
        for node in self._order:
            if node in self._of.start_ms:
                rows.setdefault(self._rank[node], []).append(self._of.start_ms[node])
        if not self._axis:
            return
        yield text_at(MARGIN, MARGIN + 20, "starts at", FIGURES, f' fill="{QUIET}"')
        for rank, starts in sorted(rows.items()):
            y = self._point((self._placed.ranks[rank], 0.0))[1]
            least, most = hours(min(starts)), hours(max(starts))
            words = [least] if least == most else [f"{least} –", most]
            for i, word in enumerate(words):
                at = y + 4 + FIGURES_LINE * (i - (len(words) - 1) / 2)
                yield text_at(MARGIN, at, word, FIGURES, f' fill="{QUIET}"')

    def edges(self) -> Iterator[str]:
        """Yields right-angled lines with an arrow at their end."""
        for route in self._placed.routes.values():
            points = [self._point(p) for p in route]
            (x, y) = points[-1]
            line = "L".join(f"{number(px)} {number(py)}" for px, py in [*points[:-1], (x, y - 6)])
            yield f'<path d="M{line}" fill="none" stroke="{LINE}" stroke-width="1.5" stroke-linejoin="round"/>'
            yield f'<path d="M{number(x)} {number(y)}l-4.5 -8h9z" fill="{LINE}"/>'
        for x, y, shown, whole in self._labels():
            line = text_at(x, y, shown, FIGURES, f' fill="{QUIET}"')
            yield f"<g><title>{escape(whole)}</title>{line}</g>"

    def _words_above(self, edges: Sequence[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
        """Returns the lines above each node: data that flows into it and events to expect before it.

        Each line comes shortened and whole.
        """
        texts_of: dict[str, dict[str, None]] = {}
        for edge in edges:
            flows = self._of.data_types.get(edge)
            here = [clean(words) for words in (*self._of.expected.get(edge, ()), *([flows] if flows else []))]
            texts_of.setdefault(edge[1], {}).update(dict.fromkeys(here))
        lines_of = {
            node: [(_shortened(words), words) for words in all_words]
            for node, all_words in texts_of.items()
            if all_words
        }
        for lines in lines_of.values():
            if len(lines) > MOST_LINES:
                rest = lines[MOST_LINES - 1 :]
                lines[MOST_LINES - 1 :] = [(f"and {len(rest)} more", ", ".join(whole for _, whole in rest))]
        return lines_of

    def _labels(self) -> Iterator[tuple[float, float, str, str]]:
        """Yields the lines at the end of the edges, the last line lowest: x, y, the shortened and the whole line."""
        ends = {dst: self._point(route[-1]) for (_, dst), route in self._placed.routes.items()}
        for node, lines in self._texts.items():
            x, y = ends[node]
            for place, (shown, whole) in enumerate(reversed(lines)):
                yield x + 7, y - 5 - place * FIGURES_LINE, shown, whole

    def nodes(self) -> Iterator[str]:
        """Yields a box for each node with title, cost, time and evidence, and everything else in its tooltip."""
        for node in self._order:
            task = self._of.tasks.get(node)
            colour = self._colours.get(self._of.lane_of(node), OTHER) if task else OTHER
            yield f'<g class="{"review" if self._is_review(node) else "step" if task else "end"}">'
            tooltip = "\n".join(clean(line) for line in self._told(node, task))
            yield f"<title>{escape(tooltip)}</title>"
            yield from self._box(node, task, colour)
            yield "</g>"

    def _box(self, node: str, task: TaskEntry | None, colour: Colour) -> Iterator[str]:
        (x, y), height = self._point(self._placed.middle[node]), self._size_of[node].along
        left, top, review = x - WIDTH / 2, y - height / 2, self._is_review(node)
        look = ' stroke-dasharray="6 3" stroke-width="2.5"' if review else ' stroke-width="1.5"'
        ends = f' rx="{number(6 if task else height / 2)}"'
        look = f'{ends} fill="{colour.fill}" stroke="{colour.border}"{look}'
        yield rectangle(Box(left, top, WIDTH, height), look)
        at = top + PADDING + 11
        if review:
            yield _line(x, at, "✓ REVIEW", FIGURES, ' font-weight="700" letter-spacing="1"')
            at += FIGURES_LINE
        for line in self._lines[node]:
            yield _line(x, at, line, TITLE, ' font-weight="500"')
            at += TITLE_LINE
        if task is not None:
            for line in self._figures(task):
                yield _line(x, at, model.shorten(line, FIGURES, WIDTH - 8), FIGURES)
                at += FIGURES_LINE

    def _figures(self, task: TaskEntry) -> Sequence[str]:
        known = self._of.evidence.get(task.id)
        # More than once in a case, too; "seen", for a process model or a flow says what is to be done, not that it was.
        seen = "never seen in history" if not known else f"seen {known:,} time{'' if known == 1 else 's'}"
        judged = "" if task.p_basis == "prior" else f" · p {chance(task.p)}"
        cost, took = self._cost(task), self._took(task)
        figures = "cost and time unknown" if cost is None and took is None else f"{usd(cost)} · {hours(took)}"
        return figures, f"{seen}{judged}"

    def _cost(self, task: TaskEntry) -> float | None:
        return self._of.workflow.by_id[task.id].known_cost_usd  # type: ignore[union-attr]  # it is a task's

    def _took(self, task: TaskEntry) -> float | None:
        return self._of.workflow.by_id[task.id].known_duration_ms  # type: ignore[union-attr]  # it is a task's

    def _told(self, node: str, task: TaskEntry | None) -> Iterator[str]:
        yield self._of.title_of(node)
        if task is None:
            return
        yield f"{'review' if task.kind == 'review' else 'step'} by {self._of.lane_of(node)}"
        yield (
            f"cost {usd(self._cost(task))} ({task.cost_basis}), takes {hours(self._took(task))} ({task.duration_basis})"
        )
        yield f"p {task.p:.4g} ({task.p_basis}), q {task.q:.4g} ({task.q_basis})"
        if node in self._of.start_ms and node in self._of.finish_ms:
            yield f"from {hours(self._of.start_ms[node])} to {hours(self._of.finish_ms[node])}"
        if task.inputs or task.outputs:
            yield f"takes {', '.join(task.inputs) or 'nothing'}; leaves {', '.join(task.outputs) or 'nothing'}"


def _shortened(words: str) -> str:
    """Shortens a line to the width available, and keeps the share at its end."""
    name, opening, share = words.rpartition(" (")
    if not opening or not share.endswith("%)"):
        return model.shorten(words, FIGURES, WORDS)
    tail = opening + share
    return model.shorten(name, FIGURES, WORDS - model.width(tail, FIGURES)) + tail


def _line(x: float, y: float, words: str, size: float, more: str = "") -> str:
    return text_at(x, y, words, size, f' text-anchor="middle"{more}')
