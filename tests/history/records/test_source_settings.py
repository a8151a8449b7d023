"""source.toml: what it accepts, what it refuses and how."""

from pathlib import Path

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.history.records.source_settings import SourceSettings, load_source


def loaded(folder: Path, text: str) -> SourceSettings:
    (folder / "source.toml").write_text(text)
    return load_source(folder)


def test_no_file_and_an_empty_one_mean_the_same(tmp_path: Path) -> None:
    assert load_source(tmp_path) == loaded(tmp_path, "") == SourceSettings()


def test_everything_of_the_specification_is_read(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        """
        industry = "claims"
        client = { column = "customer.name" }
        kind = "executed"
        weight = 3
        activity = "{concept:name} {lifecycle:transition}"
        timezone = "Europe/Amsterdam"
        currency = "USD"
        decimal = ","
        merge = false
        [columns]
        case = "Id"
        activity = "Step"
        attributes = ["a", "b"]
        task_success = "ok"
        [success]
        column = "status"
        equals = "done"
        [rates]
        human = 30
        small = { tokens_in = 1.0, tokens_out = 2.0 }
        [redact]
        drop = ["name"]
        mask_text = false
    """,
    )
    assert settings.constant("industry") == "claims"
    assert settings.constant("client") is None
    assert settings.column_of("client") == "customer.name"
    assert settings.rates["human"] == 30.0
    assert settings.redact.drop == ["name"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('industri = "x"', "unknown key industri; did you mean industry?"),
        ('[task]\noutputs = "x"\nresult = "y"', "give outputs or result, because both say what a step leaves"),
        ('[columns]\nactivty = "x"', "unknown key columns.activty; did you mean activity?"),
        ('[record]\ntask = "x"', "unknown key record.task; did you mean tasks?"),
        ('timezone = "Amsterdam"', "'Amsterdam' is no time zone; did you mean Europe/Amsterdam?"),
        ('timezone = "Europe/Amsterdm"', "did you mean Europe/Amsterdam?"),
        ('timezone = "America/Paris"', "did you mean Europe/Paris?"),
        ('timezone = "../UTC"', "is no time zone"),
        ('time_format = "%d.%m.%Y %H:%M %Z"', "%Z does not tell which zone is meant"),
        ('currency = "euro"', "'euro' is no currency"),
        ("usd_per_unit = { Eur = 1.08 }", "'Eur' is no currency"),
        ("usd_per_unit = { EUR = 0 }", "the rate of EUR must be a number of dollars above 0"),
        ("usd_per_unit = { USD = 2.0 }", "a dollar is 1"),
        ('format = "pdf"', "'pdf' is no format that is read; known are xes, csv, jsonl"),
        ('[success]\ncolumn = "a"', "column and equals go together"),
        ('[success]\ncontains_activity = "a"\ncontains_none_of = "b"', "give one rule"),
        ("[rates]\nhuman = -1", "must be a number of dollars"),
        ("[rates]\nsmall = { tokens_in = inf }", "must be a number of dollars"),
        ("weight = 0", "0 is no number of runs"),
        ("not toml", "source.toml"),
    ],
)
def test_refusals_name_file_and_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as error:
        loaded(tmp_path, text)
    assert complaint in str(error.value)
    assert "source.toml" in str(error.value)


def test_settings_from_outside_the_source_are_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text("")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "source.toml").symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(SettingsError, match="outside its folder"):
        load_source(tmp_path / "s")
