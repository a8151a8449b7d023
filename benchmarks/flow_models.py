"""Writers of enterprise flows side by side, with a tiny random causal model and a local endpoint in place of real ones.

    python -m benchmarks.flow_models FOLDER [LIMIT]

The endpoint is a program, not a model: it answers with the outline of the first example that a prompt shows, else with
the first suggested step, and with the first value of each input.
It shows that the harness works and what a prompt carries, not how good any model is.
"""

import os
import sys
from pathlib import Path
from typing import Any

from opus_pipelines.cli.main import main
from tests.lwm.language_models.chat_server import Body, ChatServer, schema_of, serving
from tests.lwm.language_models.tiny_model import write_tiny_model


def copied(body: Body) -> Any:
    """The outline of the first example, and of each input the value that shares most words with the step."""
    own = schema_of(body)
    if "steps" in own:
        return answer(body["messages"][1]["content"])
    return {name: nearest(one) for name, one in own.items()}


def nearest(schema: Body) -> Any:
    return [nearest(schema["items"])] if schema["type"] == "array" else schema["enum"][1]


def counted(body: Body, content: str) -> tuple[int, int]:
    return len(body["messages"][1]["content"]) // 4, len(content) // 4


def answer(user: str) -> dict[str, Any]:
    lines = user.split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith("example: ")), None)
    if start is None:
        step = next(line.split()[1] for line in lines if line.startswith("step: "))
        return {"trigger": "record_create", "steps": [{"depth": 0, "step": step}]}
    shown = []
    for line in lines[start + 1 :]:
        if not line.startswith("  "):
            break
        shown.append(line[2:])
    steps = [{"depth": (len(line) - len(line.lstrip())) // 2, "step": line.strip()} for line in shown[1:]]
    return {"trigger": shown[0].removeprefix("when "), "steps": steps}


def run(folder: Path, limit: str | None) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["no_proxy"] = "127.0.0.1"
    with serving(ChatServer(copied, counted)) as server:
        return compare(folder, limit, server.url)


def compare(folder: Path, limit: str | None, url: str) -> int:
    settings = folder / "opus.toml"
    settings.write_text(
        f'[causal_lm]\npath = "{write_tiny_model(folder / "tiny").absolute()}"\nmax_prompt_tokens = 1024\n'
        f'[openai_compatible]\nurl = "{url}"\nmodel = "gpt-4o-mini"\n'
    )
    names = ("composer", "catalogue", "nearest", "frequent", "causal", "endpoint")
    models = [word for name in names for word in ("--model", name)]
    more = ["--limit", limit] if limit else []
    return main(
        [
            "--settings",
            str(settings),
            "--lake",
            str(folder / "lake"),
            "flow",
            "compare",
            *models,
            *more,
            "--samples",
            str(folder / "samples.jsonl"),
        ]
    )


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
