"""Runs the commands of documentation blocks in forks of one process that has loaded everything.

A block calls `opus` some ten times, and most of the time of a short command is imports. The stand-in for the script
`opus` sends its arguments, folder, environment and standard streams to the server, which runs the same function.
"""

import gc
import importlib
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STREAMS = 3
LOADED = ("opus_pipelines.definitions", "opus_pipelines.cli.runs", "opus_pipelines.reporting.views", "duckdb")
STAND_IN = """\
#!{python} -IS
import os, pickle, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = pickle.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
    socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(asked)
    sys.exit(server.recv(1)[0])
"""


@contextmanager
def served(folder: Path) -> Iterator[Path]:
    """The path of the stand-in, which works while this context is open."""
    address, script = folder / "socket", folder / "opus"
    script.write_text(STAND_IN.format(python=sys.executable, address=str(address)))
    script.chmod(0o755)
    server = subprocess.Popen([sys.executable, __file__, str(address)], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield script
    finally:
        server.terminate()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def serve(address: str) -> None:
    """Answers one command after the other; a fork ends with the exit code of its command."""
    from opus_pipelines.cli.main import MODULES

    for module in (*LOADED, *(f"opus_pipelines.cli.{name}" for name in MODULES)):
        importlib.import_module(module)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            with connection:
                length, streams, _, _ = socket.recv_fds(connection, 4, STREAMS)
                with connection.makefile("rb") as file:
                    asked = file.read(int.from_bytes(length, "big"))
                child = os.fork()
                if child == 0:
                    run(asked, streams)
                for stream in streams:
                    os.close(stream)
                _, status = os.waitpid(child, 0)
                connection.sendall(bytes([os.waitstatus_to_exitcode(status) % 256]))


def run(asked: bytes, streams: list[int]) -> None:
    """Runs one command in this fork, and ends it."""
    from opus_pipelines.cli.main import main

    arguments, folder, environment = pickle.loads(asked)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    code = 1
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
