"""The search for credentials finds them, so that it can fail."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.credentials import found_below, secrets


def test_a_credential_in_a_log_a_table_and_a_database_is_found(tmp_path: Path) -> None:
    assert found_below(tmp_path) == []
    first, second, third, *_ = secrets()
    (tmp_path / "run.log").write_text(f"signed in with {first}")
    pq.write_table(pa.table({"said": [second]}), tmp_path / "part.parquet", compression="zstd")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as database, database:
        database.execute("CREATE TABLE runs AS SELECT ? AS body", [third])
    found = " ".join(found_below(tmp_path))
    assert [secret for secret in (first, second, third) if secret not in found] == []
