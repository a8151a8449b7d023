"""Figures as a person reads them; unknown is a dash, never 0."""


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many decimals."""
    return "-" if value is None else f"{value:,.{digits}f}"


def usd(value: float | None) -> str:
    """Dollars; small amounts keep their digits."""
    if value is None:
        return "-"
    said = f"${abs(value):,.2f}" if abs(value) >= 1 or value == 0 else f"${abs(value):.4f}"
    return f"-{said}" if value < 0 and said.strip("$0.") else said


def within(low: float | None, high: float | None) -> str:
    """An interval of dollars."""
    return "-" if low is None or high is None else f"{usd(low)} to {usd(high)}"


FAR = 0.25  # similarity below which no case of history is really like an intake: unrelated texts reach as much


def is_far(similarity: float | None) -> bool:
    """Is the nearest case of history another kind of work? Then figures are another kind of work's. This project's own
    rule.
    """
    return similarity is not None and similarity < FAR


def share(value: float | None) -> str:
    """A share in per cent."""
    return "-" if value is None else f"{100 * value:.1f} %"


def assumed(part: float | None, unknown: int | None) -> str:
    """What stands beside a total: the share of it that is assumed, and how many steps of unknown figure it leaves out."""
    steps = f"{unknown} step{'s' if unknown != 1 else ''} unknown" if unknown else ""
    return ", ".join(filter(None, (f"{share(part)} assumed" if part is not None else "", steps))) or "-"


def success(value: float | None, unknown: int | None) -> str:
    """A probability of success, and of how many steps it only supposes it; a dash where nothing was observed."""
    supposed = f" ({unknown} step{'s' if unknown != 1 else ''} assumed)" if unknown and value is not None else ""
    return f"{share(value)}{supposed}"


def chance(p: float) -> str:
    """A probability: three decimals, and none that says it is certain when it is not."""
    return f"{p:.0f}" if p in (0, 1) else f"{min(max(p, 0.001), 0.999):.3f}"


def hours(value_ms: float | None) -> str:
    """Milliseconds in the unit that suits them."""
    if value_ms is None:
        return "-"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if value_ms >= size:
            return f"{value_ms / size:.1f} {unit}"
    return f"{value_ms:.0f} ms"


def lead_time(p50_ms: float | None, p90_ms: float | None) -> str:
    """A lead time: its median, and its 90th percentile; a dash where it is unknown."""
    return "-" if p50_ms is None else f"{hours(p50_ms)}, p90 {hours(p90_ms)}"


def deadline(limit_hours: float | None, p_deadline: float | None) -> str:
    """The probability to keep a deadline, in words; nothing where there is no deadline."""
    if limit_hours is None:
        return ""
    return f"{hours(limit_hours * 3.6e6)} kept: " + ("unknown" if p_deadline is None else share(p_deadline))


def grid(rows: list[list[str]], indent: str = "  ") -> list[str]:
    """Columns aligned by their widest cell, the last one free."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)] if rows else []
    return [
        indent + "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows
    ]
