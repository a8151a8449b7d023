"""PyTorch on one thread, for models whose batches are small.

Two threads that meet after every small operation wait for each other: on a machine where other work runs, twenty
gradient steps of the Intention encoder took 28.6 s with two threads and .7 s with one, for the same weights. A process
whose PyTorch has started threads cannot be forked safely either.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Has PyTorch compute on one thread while the block runs, or the function that it decorates; then as before."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
