"""A XES log cut into parts: each is a log, together they hold every trace, and what is not certain is not cut."""

import io

import pytest
from lxml import etree

from opus_pipelines.history.ingestion.parallel_files import CannotCut, LogPart, parts_of

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!-- a log --><log xes.version="1.0"><string key="of" value="the log"/>\n'
)
TRACES = "".join(f'<trace><string key="concept:name" value="{i}"/><event/><event></event></trace>\n' for i in range(40))


def cut(text: str, size: int = 500) -> list[LogPart]:
    return list(parts_of(lambda: io.BytesIO(text.encode()), size))


@pytest.mark.parametrize("size", [30, 500, 1_000_000])
def test_every_trace_is_in_one_part_and_parts_know_their_place(size: int) -> None:
    parts = cut(HEAD + TRACES + "</log>\n", size)
    found = [[child.get("value") for child in etree.fromstring(p.content).iterfind("trace/string")] for p in parts]
    assert [value for values in found for value in values] == [str(i) for i in range(40)]
    assert [part.skipped for part in parts] == [2 * int(values[0]) for values in found]
    assert [b"the log" in part.content for part in parts] == [True] + [False] * (len(parts) - 1)
    assert (len(parts) > 1) is (size < 1_000)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD.replace("UTF-8", "UTF-16") + TRACES + "</log>", "not in UTF-8"),
        (HEAD + "<!-- " + TRACES + " --></log>", "in a comment"),
        (HEAD + TRACES + "<!-- <trace> -->" + TRACES + "</log>", "between"),
        (HEAD + TRACES + "<event/>" + TRACES + "</log>", "between"),
        (HEAD + TRACES.replace("<event/>", "<event><![CDATA[</trace>]]></event>") + "</log>", "between"),
        (HEAD + TRACES.replace("<event/>", "<!-- x -->") + "</log>", "comments"),
        (HEAD + TRACES + "<event/></log>", "the end of the log alone"),
        (HEAD + TRACES, "the end of the log alone"),
        (HEAD + "</log>", "the end of the log alone"),
        ("<!DOCTYPE log>" + HEAD + TRACES + "</log>", "head is not plain"),
    ],
)
def test_a_log_that_is_not_plain_is_not_cut(text: str, why: str) -> None:
    with pytest.raises(CannotCut, match=why):
        cut(text)
