"""The sections of `opus.toml` for forecasts, and for other programs: MLflow, language models, Prometheus, mail."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from opus_pipelines.core.settings_sections import ON_NETWORK, OUTSIDE, Section


class MLflow(Section):
    """Where trainings are recorded (MLflow)."""

    tracking_uri: str = Field(
        "",
        description="server or database of MLflow, e.g. https://mlflow.example; empty: mlflow/mlflow.db in the lake",
        json_schema_extra=ON_NETWORK,
    )
    artifact_location: str = Field(
        "",
        description="where a new experiment keeps the models' files; empty: the lake, or what the server decides",
        json_schema_extra=ON_NETWORK,
    )
    experiment: str = Field("opus", min_length=1, description="name of the experiment")
    model_prefix: str = Field(
        "opus",
        pattern=r"[A-Za-z0-9._-]+",
        description="the registered models are PREFIX-pointer and so on; give each lake its own on a shared server",
    )


class Lwm(Section):
    """The pointer model: `generation.lwm_backend = "pointer"`, and `opus train`."""

    perceptrons: int = Field(
        3, ge=1, le=9, description="perceptrons whose scores are averaged; their seeds are 0, 1, 2 and so on"
    )
    fine_tune: bool = Field(
        True,
        description="training also fine-tunes the upper layers of the sentence encoder, and uses them where that is "
        "better on held-out cases",
    )


class CausalLm(Section):
    """A causal language model of the transformers library: `generation.lwm_backend = "causal_lm"`."""

    path: Path | None = Field(
        None,
        description="folder of the model: config, tokenizer and weights as safetensors; nothing is downloaded",
        json_schema_extra=OUTSIDE,
    )
    sequences: int = Field(3, ge=1, le=16, description="sequences that are written for an intake (beams)")
    max_prompt_tokens: int = Field(2048, ge=64, description="tokens of a prompt; what is beyond is cut from its middle")
    lora_rank: int = Field(8, ge=1, description="rank of the adapter that `opus train --backend causal_lm` trains")
    epochs: int = Field(3, ge=1, description="passes over the cases in that training")
    learning_rate: float = Field(2e-4, gt=0, description="of that training")
    cases: int = Field(500, ge=1, description="cases that it learns from at most, drawn by hash")


FlowBackendName = Literal["ranker", "causal_lm", "openai_compatible"]


class Flows(Section):
    """How the flows of batches are written."""

    backend: FlowBackendName = Field(
        "ranker",
        description="what writes the flows of a batch: ranker (no language model), causal_lm or openai_compatible; "
        "contract.toml may state another as flow_backend",
    )


class OpenaiCompatible(Section):
    """An OpenAI-compatible endpoint: `generation.lwm_backend = "openai_compatible"`."""

    url: str = Field(
        "",
        pattern="^(https?://.*)?$",
        description="address, e.g. https://api.openai.com/v1",
        json_schema_extra=ON_NETWORK,
    )
    model: str = Field("", description="name of the model at the endpoint")
    api_key_variable: str = Field(
        "",
        pattern="^[A-Za-z0-9_]*$",
        description="environment variable that holds the key; empty: none is sent",
        json_schema_extra=ON_NETWORK,
    )
    sequences: int = Field(3, ge=1, le=16, description="sequences that are asked for")
    max_tokens: int = Field(1000, ge=16, description="tokens of an answer")
    attempts: int = Field(4, ge=1, description="times that a request is sent where it fails for a passing reason")
    backoff_seconds: float = Field(
        1.0, ge=0, description="wait before the second attempt, doubled each time; Retry-After wins"
    )
    seconds: float = Field(
        50, gt=0, description="for all attempts of an intake; keep it below generation.seconds_per_intake"
    )
    usd_per_million_tokens_in: float | None = Field(None, ge=0, description="price; not stated: costs are unknown")
    usd_per_million_tokens_out: float | None = Field(None, ge=0, description="price; not stated: costs are unknown")
    spend_limit_usd: float | None = Field(None, ge=0, description="most dollars a day (UTC); it needs both prices")


_VARIABLE = "^[A-Za-z0-9_]*$"


class Ops(Section):
    """The record of the runs (dataset `ops/runs`), and metrics for Prometheus."""

    keep_runs: int = Field(1_000, ge=31, description="runs whose rows are kept")
    dagster_storage: Literal["sqlite", "postgres"] = Field(
        "sqlite",
        description="where Dagster keeps its record of runs: files of the lake, or the Postgres that the environment "
        "variables DAGSTER_PG_HOST, _DB, _USERNAME, _PASSWORD and _PORT name",
        json_schema_extra=ON_NETWORK,
    )
    usd_per_cpu_hour: float | None = Field(
        None, ge=0, description="price of an hour of one processor, for the cost of a run; none: the cost is unknown"
    )
    pages_url: str = Field(
        "",
        pattern="^(https?://.*)?$",
        description="address under which the folder of `opus report --out` is served, for links in Dagster, e.g. "
        "https://reports.example.org; empty: Dagster shows the command that writes the page",
    )
    metrics_folder: Path | None = Field(
        None,
        description="folder for the metrics of the latest run of each job, where a node exporter's textfile collector "
        "reads, e.g. /var/lib/node_exporter; none: no metrics are written",
        json_schema_extra=OUTSIDE,
    )


class Alerts(Section):
    """Who is told of a run by webhook or e-mail. A run never fails because an alert could not be sent."""

    on: Literal["failure", "finding", "every"] = Field(
        "failure", description="failure: runs that failed; finding: also those with a failed check; every: all runs"
    )
    webhook: str = Field(
        "",
        pattern="^(https?://.*)?$",
        description="address to which JSON with the field `text` is posted",
        json_schema_extra=ON_NETWORK,
    )
    webhook_variable: str = Field(
        "",
        pattern=_VARIABLE,
        description="environment variable that holds the address, where it is a secret",
        json_schema_extra=ON_NETWORK,
    )
    smtp_host: str = Field("", description="mail server; empty: no e-mail is sent", json_schema_extra=ON_NETWORK)
    smtp_port: int = Field(587, ge=1, le=65_535, description="its port")
    smtp_tls: bool = Field(True, description="the connection is encrypted by STARTTLS")
    smtp_user: str = Field("", description="user at the mail server; empty: no sign-in")
    smtp_password_variable: str = Field(
        "OPUS_SMTP_PASSWORD",
        pattern=_VARIABLE,
        description="environment variable that holds the password",
        json_schema_extra=ON_NETWORK,
    )
    mail_from: str = Field("opus@localhost", description="sender")
    mail_to: tuple[str, ...] = Field((), description="recipients")


class ObjectStore(Section):
    """A lake in an S3-compatible object store (`--lake s3://bucket/prefix`).

    Credentials stand in the environment alone, in the variables that AWS's own tools read.
    """

    endpoint: str = Field(
        "",
        pattern="^(https?://[^@]*)?$",
        description="address of the store; empty: that of AWS_ENDPOINT_URL, or AWS itself",
        json_schema_extra=ON_NETWORK,
    )
    working_folder: Path = Field(
        Path("~/.cache/opus-pipelines"),
        description="folder of this machine for working on such lakes; it holds copies of their data",
        json_schema_extra=OUTSIDE,
    )
    lease_seconds: float = Field(
        60, gt=0, description="a writer that did not renew its lease for so long may be replaced by another"
    )
    grace_hours: float = Field(
        24, ge=0, description="what the lake no longer has stays in the store for so long, for readers"
    )
    parallel: int = Field(16, ge=1, le=256, description="files that are sent or fetched at once")
    retry_seconds: float = Field(60, gt=0, description="a request that fails for a passing reason is tried for so long")


class ServiceLevel(Section):
    """By when one activity of a running case is done."""

    activity: str = Field(min_length=1, description="as history names it")
    hours: float = Field(gt=0, allow_inf_nan=False, description="most hours until it is done, waiting included")
    after: str | None = Field(None, description="activity from which they count; unstated: the first event")


class ForecastLimits(Section):
    """Limits of the running cases of one source; a contract's own limits win."""

    lead_time_hours: float | None = Field(None, gt=0, allow_inf_nan=False, description="from first to last event")
    cost_usd: float | None = Field(None, gt=0, allow_inf_nan=False, description="of all activities")
    steps: int | None = Field(None, gt=0, description="number of activities")
    service_levels: list[ServiceLevel] = Field([], description="by when single activities are done")


class Forecasts(Section):
    """Forecasts of the cases that are still open in history."""

    nightly: bool = Field(True, description="a rebuild refreshes them after its snapshot is published")
    open_cases: dict[str, str] = Field(
        {},
        description='of a source, the attribute that says that a case still runs, e.g. { claims = "status=running" }; '
        "else it is told from the silence since its last event",
    )
    limits: dict[str, ForecastLimits] = Field(
        {},
        description="of a source, the limits of its cases whose chance to be broken is forecast, e.g. "
        "{ claims = { lead_time_hours = 72, cost_usd = 40, steps = 12 } }; `service_levels` of a source are a list of "
        '{ activity = "Pay", hours = 48, after = "Approve" }',
    )
