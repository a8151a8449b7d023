"""The results of contracts as tables."""

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import NEIGHBOURS
from opus_pipelines.lake.results import ResultKey, by_column

KEY = ResultKey("Acme", "Retail", "r1")
HEAD = {"client": "Acme", "contract": "Retail", "result": "r1"}


def test_what_a_row_does_not_have_is_null() -> None:
    rows = [{"intake_id": "k1", "similarity": 0.5}, {"intake_id": "k2", "implementation_id": "c7"}]
    unknown = {"is_compared": None}
    assert KEY.table(NEIGHBOURS, rows).to_pylist() == [
        HEAD | {"intake_id": "k1", "intention_id": None, "implementation_id": None, "similarity": 0.5, **unknown},
        HEAD | {"intake_id": "k2", "intention_id": None, "implementation_id": "c7", "similarity": None, **unknown},
    ]


def test_no_rows_are_an_empty_table() -> None:
    assert KEY.table(NEIGHBOURS, []).num_rows == 0


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(LakeError, match=r"generation/neighbours has no columns \['weight'\]"):
        by_column(NEIGHBOURS, [{"intake_id": "k1", "weight": 1.0}])
