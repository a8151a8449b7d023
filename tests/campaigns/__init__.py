"""How many examples a costly property test draws: a few in each run, many more in `make test-nightly`."""

from hypothesis import settings

NIGHTLY_FACTOR = 20


def examples(few: int) -> int:
    """Returns `few`, or 20 times as many under the hypothesis profile `nightly`."""
    return few * (NIGHTLY_FACTOR if settings.get_current_profile_name() == "nightly" else 1)
