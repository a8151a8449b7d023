"""Credentials of a run for tests, and the search for them in everything that the run left."""

from collections.abc import Mapping
from pathlib import Path

from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.search import Word, search

# The variables of a store, a database, a mail server, a webhook and an endpoint of language models.
CREDENTIALS: Mapping[str, str] = {
    "AWS_SECRET_ACCESS_KEY": "9sKq2storeSecretXw7",
    "AWS_SESSION_TOKEN": "7tTn4sessionTokenQz1",
    "DAGSTER_PG_PASSWORD": "4pGdatabaseSecretLm8",
    "OPUS_SMTP_PASSWORD": "2mAmailSecretRt5",
    "TEST_WEBHOOK": "http://127.0.0.1:9/hooks/6hKwebhookSecretBv3",
    "OPUS_OPENAI_COMPATIBLE_API_KEY_VARIABLE": "TEST_API_KEY",
    "TEST_API_KEY": "8aPapiKeySecretNc6",
    "MLFLOW_TRACKING_PASSWORD": "3fLtrackingSecretDs9",
}
SETTINGS = {  # alerts of every run, which cannot be delivered, so that the failure is logged too
    "OPUS_ALERTS_ON": "every",
    "OPUS_ALERTS_WEBHOOK_VARIABLE": "TEST_WEBHOOK",
    "OPUS_ALERTS_SMTP_HOST": "127.0.0.1",
    "OPUS_ALERTS_SMTP_PORT": "9",
    "OPUS_ALERTS_SMTP_USER": "opus",
    "OPUS_ALERTS_MAIL_TO": '["a@example.org"]',
}


def secrets() -> list[str]:
    """The parts of the credentials that nobody may see."""
    return [value.rpartition("/")[2] for name, value in CREDENTIALS.items() if not name.endswith("_VARIABLE")]


def found_below(folder: Path) -> list[str]:
    """A line for each credential in a byte of a file, a value of a table or database, or a name."""
    lines = [f"{one.file} {one.place}: {one.word.text}" for one in search(Lake(folder), words())]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return lines + [str(file) for file in files for secret in secrets() if secret.encode() in file.read_bytes()]


def words() -> list[Word]:
    return [Word("credential", secret) for secret in secrets()]
