"""The page of a process: what it holds equals the shipped queries, and a browser draws it without a complaint."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.pages import process
from opus_pipelines.reporting.pages.process import process_pages, render_process
from opus_pipelines.reporting.views import connect, run
from tests.reporting.process_lake import TITLES, cases_of, write_lake

CHROMIUM = shutil.which("chromium") or ""
HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    titles = TITLES | {"t2": HOSTILE}
    return write_lake(tmp_path_factory.mktemp("pages") / "lake", cases_of(11), titles)


@pytest.fixture(scope="module")
def page(lake: Lake) -> str:
    (page,) = [page for page in process_pages(connect(lake), "Acme") if page.source == "bank"]
    return render_process(page)


def data_of(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="process">(.*?)</script>', page, re.DOTALL)
    return dict(json.loads(text))


def test_the_map_of_the_page_is_the_query(lake: Lake, page: str) -> None:
    data = data_of(page)
    titles = [title for title, _, _ in data["activities"]]
    drawn = {
        (None if a is None else titles[a], None if b is None else titles[b]): (times, wait)
        for a, b, times, wait in data["arcs"]
    }
    rows = run(connect(lake), "process_map", {"client": "Acme", "source": "bank"}).fetchall()
    assert drawn == {(row[2], row[3]): (row[4], row[5]) for row in rows}
    assert sum(times for (first, _), (times, _) in drawn.items() if first is None) == data["cases"]
    assert sum(cases for _, cases, _ in data["variants"]) == data["cases"]
    assert sum(began for _, began, _ in data["weeks"]) == data["cases"] == len(data["dots"])


def test_it_names_the_contract_to_go_on_with_and_the_rows_behind_each_figure(page: str) -> None:
    assert '<a href="Acme__Loans.html">Loans</a>' in page
    assert "opus query NAME --set source=&#34;bank&#34; --set client=&#34;Acme&#34;" in page
    assert {"process_waits", "process_rework", "process_costs", "process_map"} <= set(
        re.findall(r"<code>(\w+)</code>", page)
    )


def test_no_text_of_a_client_runs_as_a_script(page: str) -> None:
    assert HOSTILE not in page
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = {"sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts}
    (allowed,) = re.findall(r"script-src ([^;]*);", page)
    assert {word.strip("'") for word in allowed.split()} == hashes


def test_the_libraries_are_those_that_are_written_down() -> None:
    folder = Path(process.__file__).with_name("libraries")
    stated = dict(
        re.findall(r"^\| (\S+\.js) \|.*\| (\w{64}) \|$", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
    )
    assert stated == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.js")}
    assert len(stated) == 3


def test_a_log_without_times_costs_and_people_has_a_page_that_says_so(tmp_path: Path) -> None:
    bare = ("started_at", "lead_time_ms", "p_ended", "success")
    lists = ("task_started_at", "task_actors", "task_duration_ms", "task_wait_ms", "task_cost_usd")
    cases = [case | dict.fromkeys(bare) | {name: [None] * len(case["tasks"]) for name in lists} for case in cases_of(3)]
    pages = process_pages(connect(write_lake(tmp_path / "lake", cases)), None)
    assert len(pages) == 6
    page = render_process(pages[0])
    assert "No waiting time is known" in page
    assert data_of(page)["weeks"] == data_of(page)["dots"] == []


@pytest.mark.long
def test_the_report_of_a_client_has_its_processes_alone(lake: Lake, tmp_path: Path) -> None:
    assert main(["--lake", str(lake.root), "report", "--client", "Acme", "--out", str(tmp_path)]) == 0
    written = {path.name for path in tmp_path.glob("process*.html")}
    assert written == {"process__bank__Acme.html", "process__shop__Acme.html"}
    assert "Zenith" not in (tmp_path / "process__bank__Acme.html").read_text("utf-8")


@pytest.mark.long
@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [400, 900, 1600])
def test_a_browser_draws_it_at_every_width(page: str, tmp_path: Path, width: int) -> None:
    file = tmp_path / "page.html"
    file.write_text(page, "utf-8")
    options = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    command = [CHROMIUM, *options.split(), "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"]
    command += [f"--window-size={width},900", "--virtual-time-budget=5000", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    told = re.search(r'<p id="told"[^>]*>(.*?)</p>', done.stdout)
    assert told is not None
    assert told[1].startswith(f"{data_of(page)['cases']} cases; 5 of 5 activities")
    assert done.stdout.count("<canvas") >= 5, "three layers of the map, and two charts"
