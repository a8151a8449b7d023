"""Which words are verbs, told by the plain tables of a dictionary."""

from lemminflect.core.Inflections import Inflections

from opus_pipelines.language.grammar.modality import inflected, is_participle, may_be_third_person


def test_forms_of_verbs_are_those_of_the_tables() -> None:
    assert inflected("send", "VBN") == ("sent",)
    assert inflected("check", "VBZ") == ("checks",)
    assert is_participle("verified")
    assert may_be_third_person("checks")


def test_an_unknown_word_has_no_forms_and_no_pickle_is_read_for_it() -> None:
    assert inflected("zorvelate", "VBN") == ()
    assert not is_participle("zorvelated")
    assert not hasattr(Inflections(), "morph_style_model"), "the rules that lemminflect unpickles"
