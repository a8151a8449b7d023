"""One small lake for all trainings of a process."""

import pytest

from tests.lwm.training.small_lake import Small, make_small


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """Shared: copy the lake where a test changes it."""
    return make_small(tmp_path_factory.mktemp("small"))
