"""What the pages promise: blocks of known kinds, make targets that exist, a short README, a used glossary, a site
without broken links.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, pages

SHOWN_ONLY = {  # blocks that a test cannot run: page and first line, and why
    (
        "docs/install.md",
        "python3 -m venv .venv && .venv/bin/pip install uv",
    ): "it replaces the install that the tests run in",
    (
        "docs/how-to/object-store.md",
        "pip install 'opus-pipelines[object-store]'",
    ): "it needs a store; tests/lake/object_store/test_commands.py runs its commands that need no Spark",
    ("docs/how-to/forecasts.md", "opus forecast running.csv --source claims"): "it reads an invented export",
    ("docs/how-to/forecasts.md", "opus forecast --source claims"): "it names an invented source",
    (
        "docs/how-to/flow-batches.md",
        "cat > build/flow-intakes/known.jsonl <<'KNOWN'",
    ): "tests/cli/test_flow_text.py runs the same without starting five processes that load the encoder",
    (
        "docs/how-to/flow-batches.md",
        'opus --settings opus.toml flow edit build/flow-intakes/issue.bpmn "Send a slack message" '
        "--backend openai_compatible \\",
    ): "it needs an endpoint or a model; tests/cli/test_flow_backend.py runs the first command against a local one",
    (
        "docs/how-to/flow-batches.md",
        'opus flow new "Create an issue in Jira" --catalogue '
        "build/flow-intakes/Northwind/Automation/flows/catalogue.json --to bpmn -o build/flow-intakes/issue.bpmn",
    ): "tests/cli/test_flow_text.py runs the same, as above",
    (
        "docs/how-to/operator.md",
        "pip install 'dagster-postgres>=0.29.27,<0.30'",
    ): "it names an invented server; tests/jobs/test_postgres.py runs the same against one of its own",
    ("docs/how-to/deployment.md", "cat > deploy/.env <<'END'"): "there is no container engine",
    (
        "docs/how-to/deployment.md",
        "docker build -f deploy/Dockerfile -t registry.example.org/opus-pipelines:0.1.0 .",
    ): "there is neither a container engine nor a cluster; tests/test_deploy.py checks the files",
    ("docs/how-to/operator.md", "opus train"): "it trains for a minute; tests/test_canary.py runs it on few cases",
    ("docs/how-to/operator.md", "opus ui"): "it serves until it is stopped",
    ("docs/how-to/operator.md", "mlflow ui --backend-store-uri sqlite:///build/lake/mlflow/mlflow.db"): "it serves too",
    (
        "docs/how-to/analyst.md",
        "duckdb -init build/lake/views.sql -c "
        '"SELECT client, contract, title, reward_usd, cost_usd FROM workflows_optimized WHERE rank = 1"',
    ): "DuckDB's command line is no dependency; the block below it runs the same file from Python",
    (
        "docs/how-to/extender.md",
        "dagster definitions validate -m opus_pipelines.definitions",
    ): "it takes seconds, and the tests of the definitions load the same",
    ("docs/how-to/extender.md", "make test-nightly"): "it takes an hour",
    ("docs/explanation/lead-time.md", "PYTHONPATH=. python benchmarks/lead_time.py EVENT_LOGS"): "it needs real logs",
    ("CONTRIBUTING.md", "scripts/same_rows.py write AFTER.json"): "it takes three minutes",
    (
        "CONTRIBUTING.md",
        "pipx install pre-commit && pre-commit install",
    ): "it changes the checkout that the tests run in",
}
# its examples name invented clients; tests/cli/test_reference.py has click parse them
HELP_TEXTS = "docs/reference/cli.md"
TERM = re.compile(r"^- \*\*(?P<term>[^*]+)\*\*: (?P<meaning>\S.*)$", re.MULTILINE)


def test_every_block_is_of_a_known_kind() -> None:
    kinds = {block.info for page in pages() for block in blocks(page)}
    assert kinds <= {"sh", "console", "text", "toml", "python"}  # test_extending.py runs the blocks of Python


def test_blocks_that_are_only_shown_have_a_reason() -> None:
    shown = {
        (b.page, b.lines[0]) for page in pages() if page != HELP_TEXTS for b in blocks(page) if b.info == "console"
    }
    assert shown == set(SHOWN_ONLY)


def test_make_targets_of_the_pages_exist() -> None:
    known = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {target for page in pages() for b in blocks(page) if b.info == "sh" for target in b.targets}
    named |= {target for page in pages() for target in re.findall(r"`make ([a-z-]+)", (ROOT / page).read_text("utf-8"))}
    assert named - known == set()
    assert {"run", "test", "docs"} <= named


def test_the_readme_is_short_and_starts_with_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 150
    assert [line.split("#")[0].strip() for line in lines[:4]] == ["```sh", "make run", "make test", "```"]


def test_links_of_the_pages_at_the_top_lead_somewhere() -> None:
    """mkdocs sees docs/ alone."""
    links = {
        (page, target.split("#")[0])
        for page in pages()
        if "/" not in page
        for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", (ROOT / page).read_text("utf-8"))
        for target in target
        if target
        if not target.startswith("https://")
    }
    assert [link for link in sorted(links) if not (ROOT / link[1]).exists()] == []


def test_the_glossary_is_small_and_sorted() -> None:
    terms = [match["term"] for match in TERM.finditer((ROOT / "docs/glossary.md").read_text("utf-8"))]
    assert 40 <= len(terms) <= 60
    assert terms == sorted(terms, key=str.lower)
    assert len({term.lower() for term in terms}) == len(terms)


@pytest.mark.long
def test_every_term_of_the_glossary_is_used() -> None:
    """In another page, or in the package; the part in brackets is a symbol."""
    terms = [
        re.sub(r" \(.*\)", "", match["term"]).lower()
        for match in TERM.finditer((ROOT / "docs/glossary.md").read_text("utf-8"))
    ]
    texts = [(ROOT / page).read_text("utf-8") for page in pages() if page != "docs/glossary.md"]
    texts += [path.read_text("utf-8") for path in (ROOT / "opus_pipelines").rglob("*.py")]
    everything = " ".join(" ".join(texts).lower().replace("_", " ").split())
    assert [term for term in terms if not re.search(rf"\b{re.escape(term)}", everything)] == []


@pytest.mark.long
def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "explanation" / "limits.html").is_file()
