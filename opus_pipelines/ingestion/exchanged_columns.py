"""Doubts whether the columns of case and activity are exchanged, in all files of a source or in one of them.

Such a log is read without an error: each activity becomes a case, and each case an activity.
"""

from collections.abc import Collection, Sequence

MOST_PLAUSIBLE = 20  # activities that a small log may have although it has fewer cases
TABLES = frozenset({"csv", "parquet"})  # formats whose columns a person or a guess names


def in_one_file(activities: Collection[str], ids: Sequence[Collection[str]]) -> list[str]:
    """Returns the names that are both an activity and a case, sorted; `ids` are the cases of each file."""
    return sorted(name for name in activities if any(name in of_file for of_file in ids))


def more_activities(activities: int, cases: int) -> str | None:
    """Returns that there are implausibly many activities, or None."""
    if activities <= max(MOST_PLAUSIBLE, cases):
        return None
    return f"more activities ({activities:,}) than cases ({cases:,}); are the columns of case and activity exchanged?"


def exchange_doubt(activities: Collection[str], ids: Sequence[Collection[str]], cases: int) -> str | None:
    """Returns a sentence without names of the data where the columns may be exchanged, or None."""
    if both := in_one_file(activities, ids):
        return (
            f"{len(both):,} name{'s are' if len(both) != 1 else ' is'} both a case and an activity; are the columns of "
            "case and activity exchanged in one of the files?"
        )
    return more_activities(len(activities), cases)
