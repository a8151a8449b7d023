"""What happens after a run: cost, metrics, and alerts that reach a webhook and a mail server, or fail nothing."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Session
from prometheus_client.parser import text_string_to_metric_families

from opus_pipelines.core.settings import Alerts, Ops, Paths, Settings
from opus_pipelines.lake import runs
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.runs import latest, report
from tests.lake.runs.night_rows import failed_night, night

SECRET = "s3cr3t-of-the-mail"


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted, and answers with the status that the path names."""

    posted: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(int(self.path.strip("/") or 200))
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    posted: list[dict[str, Any]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Kept", (Hook,), {"posted": posted}))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", posted
    server.shutdown()
    server.server_close()


class Mails:
    """Keeps the mails that arrive."""

    def __init__(self) -> None:
        self.received: list[Any] = []

    async def handle_DATA(self, _server: Any, _session: Session, envelope: Any) -> str:  # noqa: N802
        self.received.append(envelope)
        return "250 OK"


def signed_in(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
    return AuthResult(success=data.password == SECRET.encode(), handled=False)  # so that it answers 535


@pytest.fixture
def mails() -> Iterator[tuple[int, list[Any]]]:
    kept = Mails()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Controller(kept, hostname="127.0.0.1", port=port, authenticator=signed_in, auth_require_tls=False)
    server.start()
    yield port, kept.received
    server.stop()


def test_a_failed_night_is_told_by_webhook(hook: Any) -> None:
    address, posted = hook
    assert runs.send_alerts(failed_night(1), Alerts(webhook=address)) == []
    assert posted[0]["text"].splitlines() == [
        "rebuild: failure after 60 s",
        "reason: the disk is full",
        "evidence: runs/7.db (`opus ui`, run 7)",
        "repeat: opus rebuild",
    ]
    assert (posted[0]["status"], posted[0]["run"]) == ("failure", "run-001")


@pytest.mark.long
def test_a_failed_night_is_told_by_mail(mails: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    port, received = mails
    monkeypatch.setenv("MAIL_SECRET", SECRET)
    settings = Alerts(
        smtp_host="127.0.0.1",
        smtp_port=port,
        smtp_tls=False,
        smtp_user="opus",
        smtp_password_variable="MAIL_SECRET",
        mail_to=("a@example.org", "b@example.org"),
    )
    assert runs.send_alerts(failed_night(1), settings) == []
    assert received[0].rcpt_tos == ["a@example.org", "b@example.org"]
    assert b"Subject: rebuild: failure after 60 s" in received[0].content
    assert b"\r\nDate: " in received[0].content
    monkeypatch.setenv("MAIL_SECRET", "another")
    (line,) = runs.send_alerts(failed_night(1), settings)
    assert "535" in line
    assert "another" not in line
    monkeypatch.delenv("MAIL_SECRET")
    (line,) = runs.send_alerts(failed_night(1), settings)
    assert "environment variable" in line


@pytest.mark.parametrize(
    ("on", "run", "wanted"),
    [
        ("failure", night(1), False),
        ("failure", night(1, checks_failed=1), False),
        ("failure", failed_night(1), True),
        ("finding", night(1), False),
        ("finding", night(1, checks_failed=1), True),
        ("every", night(1), True),
    ],
)
def test_who_is_told_of_what(on: Any, run: Any, wanted: bool) -> None:
    assert runs.is_alert_wanted(run, Alerts(on=on)) is wanted


def test_an_alert_that_cannot_be_sent_is_a_line_without_the_address(hook: Any) -> None:
    address, posted = hook
    (line,) = runs.send_alerts(failed_night(1), Alerts(webhook=f"{address}/500"))
    assert "HTTPError" in line
    assert "500" in line
    assert address not in line
    assert len(posted) == 1
    (line,) = runs.send_alerts(failed_night(1), Alerts(smtp_host="127.0.0.1", smtp_port=1, mail_to=("a@b",)))
    assert "e-mail" in line


def test_the_address_may_be_a_secret_of_the_environment(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    address, posted = hook
    monkeypatch.setenv("HOOK", address)
    assert runs.send_alerts(failed_night(1), Alerts(webhook_variable="HOOK")) == []
    assert len(posted) == 1
    monkeypatch.delenv("HOOK")
    assert len(runs.send_alerts(failed_night(1), Alerts(webhook_variable="HOOK"))) == 1


def test_a_run_is_reported_once_with_its_cost_its_metrics_and_its_alert(tmp_path: Path, hook: Any) -> None:
    address, posted = hook
    settings = Settings(
        paths=Paths(lake=tmp_path / "lake"),
        ops=Ops(usd_per_cpu_hour=0.04, metrics_folder=tmp_path / "metrics"),
        alerts=Alerts(webhook=address, on="every"),
    )
    assert report(settings, night(1))
    assert not report(settings, night(1))
    assert len(posted) == 1
    (row,) = latest(Lake(tmp_path / "lake"), "rebuild", 3)
    assert row.cost_usd == pytest.approx(0.02)
    text = (tmp_path / "metrics" / "opus_rebuild.prom").read_text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    (cost,) = families["opus_run_cost_usd"].samples
    assert (cost.labels, cost.value) == ({"job": "rebuild"}, pytest.approx(0.02))
    stages = {one.labels["stage"]: one.value for one in families["opus_run_stage_seconds"].samples}
    assert stages == {"read_history": 5.0, "mine": 40.0}


def test_what_is_unknown_has_no_metric_and_a_failure_is_zero(tmp_path: Path) -> None:
    runs.write_metrics(failed_night(1, items=None, drift_share=None), tmp_path / "opus_rebuild.prom")
    text = (tmp_path / "opus_rebuild.prom").read_text()
    assert "opus_run_items" not in text
    assert 'opus_run_success{job="rebuild"} 0.0' in text


def test_a_lake_that_cannot_be_written_fails_no_run(tmp_path: Path, hook: Any) -> None:
    address, posted = hook
    (tmp_path / "lake").write_text("a file where the lake should be")
    assert report(Settings(paths=Paths(lake=tmp_path / "lake"), alerts=Alerts(webhook=address)), failed_night(1))
    assert len(posted) == 1
