"""How many examples a costly property test draws: some in each run, many more in `make test-nightly`."""

from hypothesis import settings

NIGHTLY_FACTOR = 20


def examples(many: int) -> int:
    """Returns half of `many`, or 20 times `many` under the hypothesis profile `nightly`."""
    return many * NIGHTLY_FACTOR if settings.get_current_profile_name() == "nightly" else many // 2
