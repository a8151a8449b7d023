"""The fixtures of requirements for this folder."""

from tests.intention_fixtures import text_elements

__all__ = ["text_elements"]
