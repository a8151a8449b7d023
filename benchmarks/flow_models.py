"""Writers of enterprise flows side by side, with a tiny random causal model and a local endpoint in place of real ones.

    python -m benchmarks.flow_models FOLDER [LIMIT]

The endpoint is a program, not a model: it answers with the outline of the first example that a prompt shows, else with
the first suggested step. It shows that the harness works and what a prompt carries, not how good any model is.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opus_pipelines.cli.main import main
from tests.language_models.tiny_model import write_tiny_model


class Copying(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = body["messages"][1]["content"]
        options = body["response_format"]["json_schema"]["schema"]["properties"].get("choice", {}).get("enum")
        content = json.dumps({"choice": options[0]} if options else answer(user))
        usage = {"prompt_tokens": len(user) // 4, "completion_tokens": len(content) // 4}
        data = json.dumps({"choices": [{"message": {"content": content}}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


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
    server = ThreadingHTTPServer(("127.0.0.1", 0), Copying)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["no_proxy"] = "127.0.0.1"
    settings = folder / "opus.toml"
    settings.write_text(
        f'[causal_lm]\npath = "{write_tiny_model(folder / "tiny").absolute()}"\nmax_prompt_tokens = 1024\nepochs = 1\n'
        "lora_rank = 8\nlearning_rate = 0.01\n"
        f'[openai_compatible]\nurl = "http://127.0.0.1:{server.server_port}/v1"\nmodel = "gpt-4o-mini"\n'
    )
    names = ("composer", "catalogue", "nearest", "frequent", "causal", "lora", "endpoint")
    models = [word for name in names for word in ("--model", name)]
    more = ["--limit", limit] if limit else []
    return main(
        ["--settings", str(settings), "flow", "compare", *models, *more, "--samples", str(folder / "samples.jsonl")]
    )


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
