"""Makes assets fail with their reason first: Dagster shows the first line of an error as the reason of the run."""

import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import dagster as dg

from opus_pipelines.core.errors import OpusError

P = ParamSpec("P")
T = TypeVar("T")


def reason_first(compute: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Wraps an asset's function, so that its errors are raised as `dg.Failure` with their own message.

    Without this the first line is Dagster's ("Error occurred while executing op ..."), and the reason comes after two
    tracebacks.
    """

    @functools.wraps(compute)
    def told(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from compute(*args, **kwargs)
        except dg.Failure:
            raise
        except OpusError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        except Exception as error:
            raise dg.Failure(description=f"unexpected {type(error).__name__}: {error}") from error

    return told
