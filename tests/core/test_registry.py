"""Entries of installed distributions: loaded when used, and refused with the distribution, the entry and the remedy."""

import sys
from collections.abc import Callable

import pytest

from opus_pipelines.core.errors import PluginError
from opus_pipelines.core.registry import Registry, takes
from tests.distributions import Install

GROUP = "[opus_pipelines.colours]\n"


def colours() -> Registry[Callable[[str], str]]:
    return Registry("colours", {"red": "operator:neg"}, lambda name, value: takes(value, "text"))


def test_an_added_entry_stands_behind_the_built_in_ones_with_its_origin(install: Install) -> None:
    assert colours().names() == ("red",)
    install("paint_a", GROUP + "blue = paint_a:blue", "def blue(text):\n    return text + '!'\n")
    assert colours().names() == ("red", "blue")
    assert colours().get("blue")("sky") == "sky!"
    assert (colours().origin("blue"), colours().origin("red")) == ("paint_a 1.2", "")


def test_a_name_is_known_and_a_built_in_entry_used_without_importing_a_broken_module(install: Install) -> None:
    install("paint_b", GROUP + "blue = paint_b:blue", "1 / 0")
    assert colours().names() == ("red", "blue")
    assert colours().get("red")(3) == -3  # type: ignore[arg-type,comparison-overlap]
    assert "paint_b" not in sys.modules


@pytest.mark.parametrize(
    ("name", "entries", "code", "parts"),
    [
        (
            "paint_c",
            "red = paint_c:red",
            "def red(text): ...",
            ["'red'", "paint_c 1.2", "built-in", "uninstall paint_c"],
        ),
        (
            "paint_d",
            "blue = paint_d:blue",
            "1 / 0",
            ["'blue'", "paint_d 1.2", "ZeroDivisionError", "docs/extending.md"],
        ),
        ("paint_e", "blue = paint_e:blue", "blue = 3", ["paint_e:blue", "(text)", "int", "uninstall paint_e"]),
        ("paint_f", "blue = paint_f:blue", "def blue(): ...", ["paint_f:blue", "too many positional arguments"]),
        ("paint_g", "blue = paint_g:none", "", ["paint_g:none", "AttributeError"]),
    ],
)
def test_an_entry_that_cannot_be_used_names_the_distribution_and_the_remedy(
    name: str, entries: str, code: str, parts: list[str], install: Install
) -> None:
    install(name, GROUP + entries, code)
    with pytest.raises(PluginError) as caught:
        colours().get("blue")
    assert [part for part in parts if part not in str(caught.value)] == []


def test_two_distributions_with_one_name_are_both_named(install: Install) -> None:
    install("paint_h", GROUP + "blue = paint_h:blue", "def blue(text): ...")
    install("paint_i", GROUP + "blue = paint_i:blue", "def blue(text): ...")
    with pytest.raises(PluginError) as caught:
        colours().names()
    assert "paint_h 1.2" in str(caught.value)
    assert "paint_i 1.2" in str(caught.value)


def test_an_unknown_name_has_no_entry() -> None:
    with pytest.raises(KeyError):
        colours().get("green")
