"""The record of each run of the jobs, and who is told of it: the dataset `ops/runs`, metrics and alerts.

The dataset `ops/runs`: one row for each run that has ended, written once.

Metrics of the latest run of a job, in the text format of Prometheus, one file for each job. A node exporter reads the
files by its textfile collector, so no port is opened.

Alerts: a message to a webhook, and one by e-mail, for a run that failed or that found something. What cannot be sent
is told as a line and fails nothing.
"""

import json
import logging
import os
import smtplib
import ssl
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.formatting import clean
from opus_pipelines.core.schemas import OPS_RUNS
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.settings_sections import Alerts
from opus_pipelines.lake.layout import Lake, read_table, table_of, write_table
from opus_pipelines.lake.search import Word, search

MOST_FINDING = 300  # characters of the finding of a failed check


@dataclass(frozen=True)
class Stage:
    """One step of a run and its duration."""

    stage: str
    duration_ms: float


@dataclass(frozen=True)
class RunRecord:
    """One run; the fields are the columns of `ops/runs`."""

    run: str
    job: str
    status: str
    started_at: datetime
    ended_at: datetime
    duration_ms: float
    stages: tuple[Stage, ...] = ()
    contract_key: str | None = None
    snapshot: str | None = None
    items: int | None = None
    items_per_second: float | None = None
    rejects: int | None = None
    checks: int = 0
    checks_failed: int = 0
    failed_checks: tuple[str, ...] = field(default=())
    drift_share: float | None = None
    cpu_ms: float | None = None
    peak_memory_mb: float | None = None
    cost_usd: float | None = None
    reason: str | None = None
    evidence: str | None = None
    repeat: str | None = None

    @property
    def has_failed(self) -> bool:
        """Tells whether the run failed."""
        return self.status != "success"


def is_recorded(lake: Lake, run: str) -> bool:
    """Tells whether the run has its row."""
    return lake.folder(OPS_RUNS, run_key=run).is_dir()


def record(lake: Lake, run: RunRecord, keep: int) -> bool:
    """Writes the row of a run, and removes all rows but those of the latest `keep` runs.

    Returns False where the run has a row already. It needs no lock: the row of a run is a folder of its own.
    """
    final = lake.folder(OPS_RUNS, run_key=run.run)
    if final.exists():
        return False
    lake.ensure_empty()
    with lake.staging_without_lock() as staged:
        write_table(OPS_RUNS, table_of(OPS_RUNS, [asdict(run)]), staged / "row")
        final.parent.mkdir(parents=True, exist_ok=True)
        lake.publish(staged / "row", final)
        rows = sorted(final.parent.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for old in rows[keep:]:
            with suppress(FileNotFoundError):  # another run may remove the same row
                old.rename(staged / old.name)
    return True


def latest(lake: Lake, job: str, most: int) -> list[RunRecord]:
    """Returns the latest runs of a job, the newest first."""
    rows = read_table(OPS_RUNS, *sorted((lake.root / OPS_RUNS.name).glob("run_key=*"))).to_pylist()
    chosen = sorted((row for row in rows if row["job"] == job), key=lambda row: row["started_at"], reverse=True)
    return [
        RunRecord(
            **row
            | {"stages": tuple(Stage(**one) for one in row["stages"] or ())}
            | {"failed_checks": tuple(row["failed_checks"] or ())}
        )
        for row in chosen[:most]
    ]


def remove_runs(lake: Lake, words: Iterable[Word]) -> int:
    """Removes the rows in which one of the words stands. Returns how many."""
    below = lake.root / OPS_RUNS.name
    found = search(lake, words, below=below) if below.is_dir() else ()
    folders = {lake.root / Path(*Path(finding.file).parts[:3]) for finding in found}
    for folder in folders:
        lake.remove(folder)
    return len(folders)


_GAUGES = (
    ("success", "1 where the latest run succeeded, 0 where it failed"),
    ("end_timestamp_seconds", "when the latest run ended, in seconds since 1970"),
    ("duration_seconds", "duration of the latest run"),
    ("items", "cases or intakes of the latest run"),
    ("rejects", "records rejected, or intakes failed"),
    ("checks_failed", "checks of the latest run that failed"),
    ("cpu_seconds", "processor time of the latest run"),
    ("peak_memory_bytes", "memory of the latest run at its peak"),
    ("drift_share", "share of tasks that came or went"),
    ("cost_usd", "cost of the latest run"),
)


def write_metrics(run: RunRecord, file: Path) -> None:
    """Writes the metrics of a run in one atomic step. A figure that is unknown is left out."""
    from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

    registry = CollectorRegistry()
    values = _values(run)
    for name, about in _GAUGES:
        if (value := values[name]) is not None:
            Gauge(f"opus_run_{name}", about, ["job"], registry=registry).labels(run.job).set(value)
    stages = Gauge("opus_run_stage_seconds", "duration of a step", ["job", "stage"], registry=registry)
    for stage in run.stages:
        stages.labels(run.job, stage.stage).set(stage.duration_ms / 1000)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(file), registry)


def _values(run: RunRecord) -> dict[str, float | None]:
    return {
        "success": float(not run.has_failed),
        "end_timestamp_seconds": run.ended_at.timestamp(),
        "duration_seconds": run.duration_ms / 1000,
        "items": run.items,
        "rejects": run.rejects,
        "checks_failed": run.checks_failed,
        "cpu_seconds": None if run.cpu_ms is None else run.cpu_ms / 1000,
        "peak_memory_bytes": None if run.peak_memory_mb is None else run.peak_memory_mb * 1e6,
        "drift_share": run.drift_share,
        "cost_usd": run.cost_usd,
    }


_SECONDS = 20.0  # for a connection and each answer


def is_alert_wanted(run: RunRecord, settings: Alerts) -> bool:
    """Tells whether people are told of this run."""
    return settings.on == "every" or run.has_failed or (settings.on == "finding" and run.checks_failed > 0)


def alert_text(run: RunRecord) -> str:
    """Returns the message: what failed, where its evidence lies, and the command that repeats the run."""
    what = f"{run.job} {run.contract_key}" if run.contract_key else run.job
    lines = [f"{what}: {run.status} after {run.duration_ms / 1000:.0f} s"]
    lines += [f"reason: {run.reason}"] if run.reason else []
    lines += [f"check: {one}" for one in run.failed_checks]
    lines += [f"evidence: {run.evidence}"] if run.evidence else []
    lines += [f"repeat: {run.repeat}"] if run.has_failed and run.repeat else []
    return "\n".join(clean(line) for line in lines)


def send_alerts(run: RunRecord, settings: Alerts) -> list[str]:
    """Sends what the settings ask for. Returns a line for each way that failed, without the credentials."""
    ways: list[tuple[str, bool, Callable[[RunRecord, Alerts], None]]] = [
        ("webhook", bool(settings.webhook_variable or settings.webhook), _post),
        ("e-mail", bool(settings.smtp_host and settings.mail_to), _mail),
    ]
    problems = []
    for name, is_set, way in ways if is_alert_wanted(run, settings) else ():
        try:
            if is_set:
                way(run, settings)
        except (
            OSError,
            smtplib.SMTPException,
            HTTPException,
            ValueError,
            KeyError,
        ) as error:  # no such variable
            problems.append(f"the alert by {name} was not sent ({_why(error)}); the run is not affected by it")
    return problems


def _why(error: Exception) -> str:
    """Returns why an alert was not sent, in words that hold no address and no password.

    The text of most errors may quote them, so that only what a server answered in figures is told.
    """
    name = type(error).__name__
    if isinstance(error, HTTPError):
        moved = ", and the address is not followed to another place" if 300 <= error.code < 400 else ""
        return f"{name}: the server answered {error.code}{moved}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{name}: the server answered {error.smtp_code}"
    if isinstance(error, KeyError):
        return f"{name}: an environment variable that the settings name is not set"
    if isinstance(error, URLError) and isinstance(error.reason, OSError):
        return f"{name}: {type(error.reason).__name__}"
    return name


def _post(run: RunRecord, settings: Alerts) -> None:
    """Posts JSON. The field `text` is what Slack, Mattermost and Teams show."""
    address = os.environ[settings.webhook_variable] if settings.webhook_variable else settings.webhook
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError("the address of the webhook is neither http nor https")
    body = {"text": alert_text(run), "job": run.job, "run": run.run, "status": run.status, "reason": run.reason}
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=_SECONDS):
        pass


def _mail(run: RunRecord, settings: Alerts) -> None:
    message = EmailMessage()
    message["Subject"] = alert_text(run).splitlines()[0]
    message["Date"] = format_datetime(datetime.now(UTC))  # RFC 5322 asks for it, and some servers refuse without
    message["From"], message["To"] = settings.mail_from, ", ".join(settings.mail_to)
    message.set_content(alert_text(run))
    with smtplib.SMTP(settings.smtp_host, settings.smtp_port, timeout=_SECONDS) as server:
        if settings.smtp_tls:
            server.starttls(context=ssl.create_default_context())
        if settings.smtp_user:
            server.login(settings.smtp_user, os.environ[settings.smtp_password_variable])
        server.send_message(message)


_MS_PER_HOUR = 3_600_000.0
logger = logging.getLogger("opus_pipelines.lake.runs")


def report(settings: Settings, run: RunRecord) -> bool:
    """Records the run, writes the metrics and sends the alerts. Returns False where this was done before."""
    lake, wanted = Lake(settings.paths.lake), settings.ops
    if run.cpu_ms is not None and wanted.usd_per_cpu_hour is not None:
        run = replace(run, cost_usd=run.cpu_ms / _MS_PER_HOUR * wanted.usd_per_cpu_hour)
    try:
        if not record(lake, run, wanted.keep_runs):
            return False
        if wanted.metrics_folder is not None:
            write_metrics(run, wanted.metrics_folder / f"opus_{run.job}.prom")
    except (OSError, OpusError) as error:
        logger.warning("run %s is not in ops/runs or in the metrics: %s", run.run, error)
    for line in send_alerts(run, settings.alerts):
        logger.warning("%s", line)
    return True
