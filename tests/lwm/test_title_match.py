"""How much of a task's title stands in a request."""

import numpy as np
import pytest

from opus_pipelines.lwm.pointer.candidates import TitleMatch, TitlePieces, letters, words

TITLES = ("clock alarm cancel", "clock alarm change", "pay card")


def test_the_word_that_tells_two_titles_apart_weighs_most() -> None:
    shares, _, _, rarest = TitleMatch(TITLES).columns("change my alarm please")
    common, own = np.log(4 / 2), np.log(4 / 1)
    assert shares == pytest.approx([common / (2 * common + own), (common + own) / (2 * common + own), 0.0])
    assert rarest == pytest.approx([common, own, 0.0])


def test_a_form_of_a_word_has_its_beginning_and_some_of_its_letters() -> None:
    by_words, by_beginnings, by_letters, _ = TitleMatch(TITLES).columns("it was cancelled")
    assert by_words.tolist() == [0.0, 0.0, 0.0]
    assert by_beginnings[0] > 0.4
    assert by_letters[0] > by_letters[1] == 0.0


def test_a_title_without_words_matches_nothing() -> None:
    assert TitlePieces(["", "pay"], words).shares("pay it").tolist() == [0.0, 1.0]
    assert [column.tolist() for column in TitleMatch([""]).columns("pay")] == [[0.0]] * 4


def test_letters_stand_together_across_the_ends_of_words() -> None:
    assert letters("pay it") == {" pay", "pay ", "ay i", "y it", " it "}
