"""Doubts whether the columns of case and activity are exchanged, in all files of a source or in one of them.

Such a log is read without an error: each activity becomes a case, and each case an activity.
"""

from collections.abc import Collection, Sequence

MOST_BY_CHANCE = 0.5  # share of the cases of a file whose ids may be names of activities
MOST_PLAUSIBLE = 20  # activities that a small log may have although it has fewer cases


def more_activities(activities: int, cases: int) -> str | None:
    """Returns that there are implausibly many activities, or None."""
    if activities <= max(MOST_PLAUSIBLE, cases):
        return None
    return f"more activities ({activities:,}) than cases ({cases:,}); are the columns of case and activity exchanged?"


def exchange_doubt(activities: Collection[str], ids: Sequence[Collection[str]], cases: int) -> str | None:
    """Returns a sentence without names of the data where the columns may be exchanged, or None.

    `ids` are the cases of each file. A few ids may be names of activities by chance, as short codes are.
    """
    for of_file in ids:
        both = sum(name in of_file for name in activities)
        if both > MOST_BY_CHANCE * len(of_file):
            return (
                f"{both:,} of {len(of_file):,} cases of one file have names of activities; are the columns of case and "
                "activity exchanged in it?"
            )
    return more_activities(len(activities), cases)
