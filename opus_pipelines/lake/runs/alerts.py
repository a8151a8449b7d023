"""Alerts: a message to a webhook, and one by e-mail, for a run that failed or that found something.

What cannot be sent is told as a line and fails nothing.
"""

import json
import os
import smtplib
import ssl
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from opus_pipelines.core.model_settings import Alerts
from opus_pipelines.core.safe_text import clean
from opus_pipelines.lake.runs.runs import RunRecord

_SECONDS = 20.0  # for a connection and each answer


def is_wanted(run: RunRecord, settings: Alerts) -> bool:
    """Tells whether people are told of this run."""
    return settings.on == "every" or run.has_failed or (settings.on == "finding" and run.checks_failed > 0)


def text_of(run: RunRecord) -> str:
    """Returns the message: what failed, where its evidence lies, and the command that repeats the run."""
    what = f"{run.job} {run.contract_key}" if run.contract_key else run.job
    lines = [f"{what}: {run.status} after {run.duration_ms / 1000:.0f} s"]
    lines += [f"reason: {run.reason}"] if run.reason else []
    lines += [f"check: {one}" for one in run.failed_checks]
    lines += [f"evidence: {run.evidence}"] if run.evidence else []
    lines += [f"repeat: {run.repeat}"] if run.has_failed and run.repeat else []
    return "\n".join(clean(line) for line in lines)


def send(run: RunRecord, settings: Alerts) -> list[str]:
    """Sends what the settings ask for. Returns a line for each way that failed, without the credentials."""
    ways: list[tuple[str, bool, Callable[[RunRecord, Alerts], None]]] = [
        ("webhook", bool(settings.webhook_variable or settings.webhook), _post),
        ("e-mail", bool(settings.smtp_host and settings.mail_to), _mail),
    ]
    problems = []
    for name, is_set, way in ways if is_wanted(run, settings) else ():
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
    body = {"text": text_of(run), "job": run.job, "run": run.run, "status": run.status, "reason": run.reason}
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=_SECONDS):
        pass


def _mail(run: RunRecord, settings: Alerts) -> None:
    message = EmailMessage()
    message["Subject"] = text_of(run).splitlines()[0]
    message["Date"] = format_datetime(datetime.now(UTC))  # RFC 5322 asks for it, and some servers refuse without
    message["From"], message["To"] = settings.mail_from, ", ".join(settings.mail_to)
    message.set_content(text_of(run))
    with smtplib.SMTP(settings.smtp_host, settings.smtp_port, timeout=_SECONDS) as server:
        if settings.smtp_tls:
            server.starttls(context=ssl.create_default_context())
        if settings.smtp_user:
            server.login(settings.smtp_user, os.environ[settings.smtp_password_variable])
        server.send_message(message)
