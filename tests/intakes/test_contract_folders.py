import os
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError, SettingsError
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.contract_settings import load_contract, load_intake, prices
from opus_pipelines.intakes.intake import discover, read_intake


def write(path: Any, text: Any = "") -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def contract(tmp_path: Path) -> Any:
    folder = tmp_path / "intakes" / "Acme Ltd" / "claims"
    write(
        folder / "contract.toml",
        'industry = "insurance"\ngain_usd = 50.0\n[constraints]\nmax_cost_usd = 10\nmin_success = 0.8\n'
        "[prices]\nusd_per_hour = { human = 40.0 }\n",
    )
    write(folder / "documents" / "sop.md", "Verify cover.")
    write(folder / "c-1" / "input" / "claim.txt", "A windscreen.")
    write(
        folder / "c-1" / "intake.toml",
        'title = "Glass"\nreceived_at = 2026-03-01T10:00:00+02:00\n[constraints]\nmax_cost_usd = 20\n',
    )
    return folder


def test_a_contract_folder_is_found_with_its_intakes(contract: Any, tmp_path: Path) -> None:
    (found,) = discover(tmp_path / "intakes")
    assert (found.client, found.contract, found.key) == ("Acme Ltd", "claims", "Acme_20Ltd__claims")
    assert [i.name for i in found.intakes] == ["c-1"]


def test_a_contract_with_a_wrong_key_keeps_its_names_unless_a_sound_folder_has_them(
    contract: Any, tmp_path: Path
) -> None:
    named = 'client = "Acme"\ncontract = "Claims 2"\n'
    write(contract / "contract.toml", f"{named}no_such_key = 1\n")
    (found,) = discover(tmp_path / "intakes")
    assert (found.client, found.contract) == ("Acme", "Claims 2")
    assert "no_such_key" in (found.problem or "")
    write(contract.parent / "other" / "contract.toml", named)
    broken, sound = discover(tmp_path / "intakes")
    assert (sound.client, sound.contract, sound.problem) == ("Acme", "Claims 2", None)
    assert (broken.client, broken.contract) == ("Acme Ltd", "claims")
    write(contract / "contract.toml", 'client = 3\ncontract = "Claims 3"\n')
    assert {one.contract for one in discover(tmp_path / "intakes")} == {"claims", "Claims 2"}


def test_an_intakes_own_value_wins(contract: Any, tmp_path: Path) -> None:
    (found,) = discover(tmp_path / "intakes")
    intake = read_intake(found, found.intakes[0], Settings())
    assert (intake.title, intake.industry, intake.gain_usd, intake.gain_basis) == (
        "Glass",
        "insurance",
        50.0,
        "observed",
    )
    assert intake.received_at.isoformat() == "2026-03-01T08:00:00+00:00"
    assert (intake.constraints.max_cost_usd, intake.constraints.min_success) == (20, 0.8)
    assert intake.refusal is None


@pytest.mark.parametrize(("default", "expected"), [(None, (None, None)), (7.0, (7.0, "prior"))])
def test_a_gain_that_nobody_states_is_unknown_and_no_default_ships(
    contract: Any, tmp_path: Path, default: Any, expected: Any
) -> None:
    write(contract / "contract.toml", 'industry = "insurance"\n')
    (found,) = discover(tmp_path / "intakes")
    intake = read_intake(found, found.intakes[0], Settings(reward={"default_gain_usd": default}))
    assert (intake.gain_usd, intake.gain_basis) == expected
    assert Settings().reward.default_gain_usd is None


def test_contract_prices_are_laid_over_the_settings_key_by_key(contract: Any) -> None:
    made = prices(Settings(), load_contract(contract), contract)
    assert made.usd_per_hour == {"human": 40.0}


def test_an_intake_without_input_is_refused_with_what_to_ask_for(contract: Any, tmp_path: Path) -> None:
    (contract / "c-1" / "input" / "claim.txt").rename(contract / "c-1" / "input" / "claim.doc")
    (found,) = discover(tmp_path / "intakes")
    refusal = read_intake(found, found.intakes[0], Settings()).refusal or ""
    assert refusal.startswith("no readable client input")
    assert "not read: input/claim.doc: " in refusal


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("contract.toml", "gian_usd = 3", "unknown key gian_usd; did you mean gain_usd?"),
        ("contract.toml", "[constraints]\nmax_cost = 3", "did you mean max_cost_usd?"),
        ("contract.toml", "gain_usd = ", "Invalid value"),
        ("c-1/intake.toml", "received_at = 2026-03-01T10:00:00", "has no time zone"),
        ("contract.toml", "[prices]\nusd_per_huor = 3", "did you mean usd_per_hour"),
    ],
)
def test_a_wrong_key_is_named_with_the_nearest_known_one(contract: Any, file: Any, text: Any, message: Any) -> None:
    write(contract / file, text)
    with pytest.raises(SettingsError, match=message.replace("?", r"\?")):
        (load_intake(contract / "c-1"), prices(Settings(), load_contract(contract), contract))


@pytest.mark.parametrize("name", ["..", "a\\nb", " "])
def test_a_name_that_is_no_name_is_refused(contract: Any, tmp_path: Path, name: Any) -> None:
    write(contract / "contract.toml", f'client = "{name}"')
    (found,) = discover(tmp_path / "intakes")
    assert "is no name" in found.problem


def test_a_folder_whose_name_is_no_utf8_costs_only_itself(contract: Any, tmp_path: Path) -> None:
    write(Path(os.fsdecode(bytes(tmp_path / "intakes") + b"/b\xff/k/i/input/a.txt")))
    good, bad = discover(tmp_path / "intakes")
    assert (good.problem, bad.client, bad.key) == (None, "b\ufffd", "b_ef_bf_bd__k")
    assert "'b\\udcff' is no name" in bad.problem
    bad.problem.encode()  # what a person is told can be stored


def test_a_folder_whose_name_is_no_name_may_be_named_in_its_settings(tmp_path: Path) -> None:
    write(Path(os.fsdecode(bytes(tmp_path) + b"/b\xff/k/contract.toml")), 'client = "Bolt"')
    (found,) = discover(tmp_path)
    assert (found.key, found.problem) == ("Bolt__k", None)


def test_an_intake_may_be_called_anything_and_is_shown_without_what_cannot_be_shown(
    contract: Any, tmp_path: Path
) -> None:
    for name in (b"i\xff", b"i\x1b[31m", b"..\\..\\x", b".git"):
        write(Path(os.fsdecode(bytes(contract) + b"/" + name + b"/input/a.txt")), "A bumper.")
    (found,) = discover(tmp_path / "intakes")
    assert [read_intake(found, folder, Settings()).folder for folder in found.intakes] == [
        "..\\..\\x",
        "c-1",
        "i\ufffd[31m",
        "i\ufffd",
    ]
    assert len({found.intake_id(folder) for folder in found.intakes}) == 4


def test_what_programs_keep_for_themselves_makes_nothing_stale_and_is_no_document(
    contract: Any, tmp_path: Path
) -> None:
    (before,) = discover(tmp_path / "intakes")
    for name in (".DS_Store", "c-1/input/.git/HEAD", "c-1/input/._notice.txt"):
        write(contract / name, "x")
    (after,) = discover(tmp_path / "intakes")
    assert (after.content, after.fingerprint()) == (before.content, before.fingerprint())
    assert all(".git" not in e.name for e in read_intake(after, after.intakes[0], Settings()).elements)


def test_a_folder_that_leads_elsewhere_is_no_contract_and_no_intake(contract: Any, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "secret" / "input" / "a.txt")
    for link in (tmp_path / "intakes" / "linked", contract.parent / "linked", contract / "linked"):
        link.symlink_to(tmp_path / "elsewhere")
    (found,) = discover(tmp_path / "intakes")
    assert (found.contract, [i.name for i in found.intakes]) == ("claims", ["c-1"])


def test_names_with_slashes_are_data(contract: Any, tmp_path: Path) -> None:
    write(contract / "contract.toml", 'client = "../etc/passwd"')
    (found,) = discover(tmp_path / "intakes")
    assert found.key == "_2e_2e_2fetc_2fpasswd__claims"


def test_a_bad_contract_costs_only_itself(contract: Any, tmp_path: Path) -> None:
    write(tmp_path / "intakes" / "Acme Ltd" / "other" / "contract.toml", "gian_usd = 3")
    good, bad = discover(tmp_path / "intakes")
    assert (good.contract, good.problem) == ("claims", None)
    assert "did you mean gain_usd?" in bad.problem


@pytest.mark.parametrize("kind", ["pipe", "hard link", "nested"])
def test_settings_that_cannot_be_read_cost_their_contract_and_are_named(
    contract: Any, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "intakes" / "Acme Ltd" / "other" / "contract.toml"
    write(path, "answers = " + "{ a = " * 5_000 if kind == "nested" else "")
    if kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    if kind == "hard link":
        (tmp_path / "second-name").hardlink_to(path)
    good, bad = discover(tmp_path / "intakes")
    assert (good.contract, good.problem) == ("claims", None)
    assert str(path) in (bad.problem or "")


def test_two_folders_of_one_name_are_an_error(contract: Any, tmp_path: Path) -> None:
    write(tmp_path / "intakes" / "other" / "k" / "contract.toml", 'client = "Acme Ltd"\ncontract = "claims"')
    write(tmp_path / "intakes" / "third" / "k" / "contract.toml", 'client = "Acme Ltd"\ncontract = "claims"')
    write(tmp_path / "intakes" / "third" / "other" / "contract.toml")
    twins, other = discover(tmp_path / "intakes")
    assert "both contract 'claims' of client 'Acme Ltd'" in twins.problem
    assert (other.contract, other.problem) == ("other", None)


def test_a_missing_folder_says_how_to_name_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--intakes"):
        discover(tmp_path / "nowhere")


def test_the_same_files_give_the_same_content(contract: Any, tmp_path: Path) -> None:
    first = discover(tmp_path / "intakes")[0].content
    assert [name for name, _ in first] == [
        "c-1/input/claim.txt",
        "c-1/intake.toml",
        "contract.toml",
        "documents/sop.md",
    ]
    write(contract / "documents" / "sop.md", "Changed.")
    assert discover(tmp_path / "intakes")[0].content != first
