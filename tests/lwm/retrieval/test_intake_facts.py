"""Facts of an intake decide conditions on figures: only figures of what the condition is about count."""

import pytest

from opus_pipelines.language.grammar.reader import statements_of
from opus_pipelines.lwm.retrieval.rule_constraints import IntakeFacts

INVOICE = """Purchase order invoice for packaging
Total net 3,608.00 USD    Tax 20 % 721.60 USD    Total 4,329.60 USD
Terms: thirty days net, two per cent discount within ten days
"""


def is_met(procedure: str, intake: str) -> bool | None:
    """Whether the facts meet the conditions of the sentence; None where they do not decide it."""
    (statement,) = statements_of(procedure)
    reason, is_decided = IntakeFacts(intake).unmet(statement.conditions)
    return True if reason is None else False if is_decided else None


@pytest.mark.parametrize(
    ("procedure", "expected"),
    [
        ("Price differences above two per cent go to the buyer.", None),
        ("If the price deviation is more than 1 %, inform the buyer.", None),
        ("If more than 5 % of the goods are missing, file a report.", None),
        ("Discounts above one per cent must be approved.", True),
        ("Discounts above ten per cent must be approved.", False),
        ("Refunds of more than 100 dollars must be checked.", None),
        ("Price differences above 50 dollars must be checked.", None),
        ("Invoices above 4,000 dollars must be approved.", True),
        ("Invoices above 5,000 dollars must be approved.", False),
    ],
)
def test_a_share_or_a_part_is_compared_with_figures_of_its_own_kind(procedure: str, expected: bool | None) -> None:
    assert is_met(procedure, INVOICE) is expected


def test_a_figure_that_the_client_states_of_the_very_thing_decides() -> None:
    rule = "Price differences above two per cent go to the buyer."
    assert is_met(rule, INVOICE + "The price difference to the order is 3.5 %.\n") is True
    assert is_met(rule, INVOICE + "The price difference to the order is 1 %.\n") is False
