"""One thread of PyTorch while a small model computes, and as many as before afterwards."""

from collections.abc import Iterator

import pytest

from opus_pipelines.language.embedding.encoder import one_thread

pytestmark = pytest.mark.long  # it imports PyTorch


@pytest.fixture
def two_threads() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_one_inside_and_as_many_as_before_outside(two_threads: None) -> None:
    import torch

    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_an_error_leaves_as_many_as_before(two_threads: None) -> None:
    import torch

    @one_thread()
    def failing() -> None:
        assert torch.get_num_threads() == 1
        raise ValueError("the loss is not finite")

    with pytest.raises(ValueError, match="not finite"):
        failing()
    assert torch.get_num_threads() == 2
