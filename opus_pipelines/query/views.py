"""DuckDB over the lake: one view a dataset, over what the pointers name now.

The logic is SQL (`sql/views`): here it is put together into the one file an analyst runs, `<lake>/views.sql`.
"""

from importlib.resources import files
from string import Template

import duckdb

from opus_pipelines.errors import LakeError
from opus_pipelines.lake import Lake, write_atomically
from opus_pipelines.schemas import DATASETS

_HEAD = """\
-- Every dataset of this lake as a view, named as the dataset with _ for /. Needs DuckDB 1.5 or later:
--   duckdb -init views.sql
-- A lake that was moved: change the next line.
SET VARIABLE lake = '{lake}';

"""


def views_sql(lake: Lake) -> str:
    """The SQL that makes all views: self-contained, resolving the pointers when it is run."""
    folder = files("sql") / "views"
    view = Template((folder / "dataset.sql").read_text("utf-8"))
    parts = [_HEAD.format(lake=str(lake.root).replace("'", "''")), (folder / "current.sql").read_text("utf-8")]
    parts += [f"-- {dataset.about}\n{view.substitute(view=dataset.view)}" for dataset in DATASETS.values()]
    return "\n".join(parts)


def write_views_sql(lake: Lake) -> None:
    """Write `<lake>/views.sql` and the empty typed files that its views fall back on."""
    lake.ensure_empty()
    text = views_sql(lake)
    path = lake.root / "views.sql"
    if not path.exists() or path.read_text("utf-8") != text:
        write_atomically(path, lambda p: p.write_text(text, "utf-8"))


def connect(lake: Lake) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory with every view of `lake`; it stays with what is published now. Raises LakeError where no lake is."""
    if not (lake.root / ".empty").is_dir():
        raise LakeError(f"{lake.root} is not a lake yet; `opus rebuild` makes one")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(views_sql(lake))
    return connection
