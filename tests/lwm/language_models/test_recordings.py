"""Recordings are written down at an endpoint of OpenAI's form, against a local server; without one they are unread."""

import threading
from collections.abc import Callable, Iterator
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import OpenaiCompatible, Paths, Settings
from opus_pipelines.core.settings import Reading as ReadingSettings
from opus_pipelines.generation.bulk.chunks import transcriber_of
from opus_pipelines.intakes.elements import Element, read_elements

SOUND = b"ID3 a recording \r\n of two steps"
Made = tuple[Settings, list[tuple[str, bytes, str]]]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Callable[..., Made]]:
    """Settings of a lake whose endpoint gives this answer, and the requests that it has seen."""
    open_servers = []

    def make(answer: bytes, status: int = 200, reading: dict[str, Any] | None = None, **more: Any) -> Made:
        seen: list[tuple[str, bytes, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                seen.append((self.path, data, self.headers["Content-Type"]))
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        open_servers.append(server)
        url = f"http://127.0.0.1:{server.server_port}/v1"
        chosen = ReadingSettings.model_validate({"transcription_model": "hears-1", **(reading or {})})
        settings = OpenaiCompatible(url=url, attempts=2, backoff_seconds=0, **more)
        return Settings(paths=Paths(lake=tmp_path / "lake"), reading=chosen, openai_compatible=settings), seen

    yield make
    for server in open_servers:
        server.shutdown()
        server.server_close()


def recording(tmp_path: Path, settings: Settings) -> Element:
    (tmp_path / "intake" / "input").mkdir(parents=True, exist_ok=True)
    (tmp_path / "intake" / "input" / "Call of Ann Miller.mp3").write_bytes(SOUND)
    (found,) = read_elements(tmp_path / "intake", (), transcribe=transcriber_of(settings, "Acme"))
    return found


def test_a_recording_is_written_down_once(tmp_path: Path, endpoint: Callable[..., Made]) -> None:
    settings, seen = endpoint(b'{"text": "Check the claim. Then pay it."}')
    assert recording(tmp_path, settings) == recording(tmp_path, settings)
    found = recording(tmp_path, settings)
    assert (found.modality, found.text) == ("audio", "Check the claim. Then pay it.")
    assert "hears-1" in (found.left_out or "")
    ((path, data, media_type),) = seen
    form = message_from_bytes(f"Content-Type: {media_type}\r\n\r\n".encode() + data)
    parts = {part.get_param("name", header="content-disposition"): part for part in form.get_payload()}
    assert (path, parts["model"].get_payload(), b"Miller" in data) == ("/v1/audio/transcriptions", "hears-1", False)
    assert parts["file"].get_filename() == "recording.mp3"
    assert SOUND in data


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (b'{"text": " "}', 200, "nothing is said"),
        (b'{"tex', 200, "broken JSON"),
        (b"{}", 200, "chat completion"),
        (b"no", 500, "status 500"),
        (b"too large", 413, "too large"),
    ],
)
def test_a_recording_that_is_not_written_down_costs_only_itself(
    tmp_path: Path, endpoint: Callable[..., Made], answer: bytes, status: int, reason: str
) -> None:
    found = recording(tmp_path, endpoint(answer, status)[0])
    assert found.text is None
    assert reason in (found.left_out or "")


def test_the_limit_of_a_day_holds_for_recordings(tmp_path: Path, endpoint: Callable[..., Made]) -> None:
    price = {"usd_per_recorded_minute": 60_000.0}  # a dollar a byte
    settings, seen = endpoint(b'{"text": "Pay."}', reading=price, spend_limit_usd=float(len(SOUND) - 1))
    found = recording(tmp_path, settings)
    assert (found.text, seen) == (None, [])
    assert "spend_limit_usd" in (found.left_out or "")


def test_without_a_model_nothing_is_sent_and_half_settings_are_refused(
    tmp_path: Path, endpoint: Callable[..., Made]
) -> None:
    settings, seen = endpoint(b'{"text": "Pay."}', reading={"transcription_model": ""})
    assert (recording(tmp_path, settings).text, seen) == (None, [])
    with pytest.raises(SettingsError, match="usd_per_recorded_minute"):
        transcriber_of(endpoint(b"", spend_limit_usd=1.0)[0], "Acme")
    with pytest.raises(SettingsError, match="url"):
        transcriber_of(Settings(reading=ReadingSettings(transcription_model="hears-1")), "Acme")
