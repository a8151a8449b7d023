"""A Postgres server of a test: Debian's, on loopback, as an unprivileged user, in a folder of its own."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark_cluster import HOST, free_port

PASSWORD = "4pGdatabaseSecretLm8"  # nobody may see it in what a run leaves
USER = "opus"
_DEBIAN = Path("/usr/lib/postgresql")


def binary(name: str) -> str | None:
    """Returns a program of the server; Debian keeps them out of the PATH."""
    return shutil.which(name) or next((str(f) for f in sorted(_DEBIAN.glob(f"*/bin/{name}"), reverse=True)), None)


class Server:
    """One server with one superuser, who signs in with a password."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._as: dict[str, Any] = (
            {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        )
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Makes its files. The server refuses to run as root, so that they belong to nobody there."""
        if self._as:
            shutil.chown(self.folder, "nobody", "nogroup")
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        signed = ["--auth=scram-sha-256", f"--pwfile={secret}", f"--username={USER}"]
        command = [binary("initdb") or "", "-D", str(self.folder / "data"), "--no-sync", "-E", "UTF8", *signed]
        done = subprocess.run(command, capture_output=True, cwd=self.folder, check=False, **self._as)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        secret.unlink()

    def start(self, seconds: float = 20.0) -> None:
        """Starts it and waits until it answers; after a kill, until the processes of the dead one are gone."""
        end = time.monotonic() + seconds
        # a killed server loses nothing that the kernel has, so there is nothing to wait for the disk for
        words = ["-D", str(self.folder / "data"), "-p", str(self.port), "-h", HOST, "-k", str(self.folder), "-F"]
        while True:
            if not self.is_running:
                with (self.folder / "log.txt").open("ab") as log:
                    self._process = subprocess.Popen(
                        [binary("postgres") or "", *words], stdout=log, stderr=log, cwd=self.folder, **self._as
                    )
            try:
                self.sql("SELECT 1", database="postgres")
                return
            except OSError:
                assert time.monotonic() < end, (self.folder / "log.txt").read_text()[-2000:]
                time.sleep(0.05)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Ends it with SIGKILL, as a machine that is taken away."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=20)

    def cut(self) -> int:
        """Cuts every connection but its own. Returns how many."""
        query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        return int(self.sql(f"{query} AND backend_type = 'client backend'", database="postgres")[0][0])

    def sql(self, query: str, database: str) -> list[tuple[Any, ...]]:
        """Returns the rows of a query. Raises ConnectionError where the server does not answer."""
        import psycopg2

        parts: dict[str, Any] = {"host": HOST, "port": self.port, "user": USER, "password": PASSWORD}
        try:
            with closing(psycopg2.connect(dbname=database, connect_timeout=5, **parts)) as connection:
                connection.autocommit = True
                with connection.cursor() as cursor:
                    cursor.execute(query)
                    return cursor.fetchall() if cursor.description else []
        except psycopg2.OperationalError as error:
            raise ConnectionError(str(error)) from None

    def database(self, name: str) -> dict[str, str]:
        """Makes a database, and returns the environment in which `opus` keeps its record of runs there."""
        self.sql(f'CREATE DATABASE "{name}"', database="postgres")
        return {
            "OPUS_OPS_DAGSTER_STORAGE": "postgres",
            "DAGSTER_PG_HOST": HOST,
            "DAGSTER_PG_PORT": str(self.port),
            "DAGSTER_PG_DB": name,
            "DAGSTER_PG_USERNAME": USER,
            "DAGSTER_PG_PASSWORD": PASSWORD,
        }


@contextmanager
def server() -> Iterator[Server]:
    """Starts a server that ends with the context. Skips the test where there is none to start."""
    if binary("initdb") is None:
        pytest.skip("there is no initdb: apt-get install postgresql")
    pytest.importorskip("dagster_postgres")
    folder = Path(tempfile.mkdtemp(prefix="opus-postgres-"))  # pytest's own folders are closed to other users
    made = Server(folder)
    try:
        made.make()
        made.start()
        yield made
    finally:
        if made.is_running:
            made.kill()
        shutil.rmtree(folder, ignore_errors=True)
