"""Where the files are that stand beside this package in a checkout: assets, jobs, resources, sql, Dagster's two files.

A wheel keeps them in the folder `_checkout` of this package, so that it takes no general name such as `assets` from the
other packages of an environment. Importing this module makes them importable in this process alone.
"""

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
_IN_A_WHEEL = PACKAGE / "_checkout"  # setup.py writes it
ROOT = _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else PACKAGE.parent
SQL = ROOT / "sql"

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
