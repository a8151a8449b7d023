"""The layout of the code: the wings and their layers, and package docstrings whose doors exist."""

import ast
import configparser
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "opus_pipelines"
WINGS = (  # from the top to the bottom; each imports only those below it
    "reporting",
    "quality",
    "flows",
    "generation",
    "forecasts",
    "lwm",
    "intakes",
    "wkg",
    "history",
    "workflow",
    "language",
    "lake",
    "core",
)
SEVERAL = {"logger", "read", "read_by_columns", "write"}  # what each registered format has, and each module that logs
MAX_WINGS = 15  # a wing has rooms, and a room as many modules as its work needs
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
ALL_PACKAGES = sorted(path.parent for path in PACKAGE.glob("*/**/__init__.py"))
ROOMS = sorted(path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/*/__init__.py"))
WITHOUT_TESTS = {"core/tables", "language/grammar"}  # rooms that the tests of other rooms run
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py"))
REPLACES = {"setattr", "setitem", "delattr", "delitem"}
MAX_PATCHES = 13
SENTENCE = 8  # plain words
MAX_SENTENCES = 16
COMPARISONS = {"startswith", "endswith", "count"}
MAY_IMPORT_DAGSTER = {"cli", "definitions"}
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def contract(name: str, key: str) -> list[str]:
    """The lines of a key of an import contract."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    return parser[f"importlinter:contract:{name}"][key].split()


def docstring(package: Path) -> str:
    """The docstring of a package as one line."""
    text = (package / "__init__.py").read_text("utf-8")
    return " ".join((ast.get_docstring(ast.parse(text)) or "").split())


def doors(text: str) -> list[str]:
    """The names in backticks that follow `Door:` or `Doors:`."""
    return re.findall(r"`([\w.]+)`", text.partition("Door")[2])


def exists(name: str) -> bool:
    """Whether `name` is a module, or leads from a module over names to something, as the files say.

    Nothing is imported: some modules load PyTorch.
    """
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:end])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return is_bound(ast.parse(file.read_text("utf-8")), parts[end:])
    return False


def is_bound(scope: ast.Module | ast.ClassDef, names: list[str]) -> bool:
    """Whether the statements of a module or of a class bind the first name, and those of that class the next."""
    if not names:
        return True
    for node in scope.body:
        if isinstance(node, ast.ClassDef) and node.name == names[0]:
            return is_bound(node, names[1:])
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        bound = {getattr(node, "name", None), *(getattr(target, "id", None) for target in targets)}
        if len(names) == 1 and names[0] in bound:
            return True
    return False


@pytest.mark.parametrize(
    ("name", "is_there"),
    [
        ("opus_pipelines.lake", True),
        ("opus_pipelines.lake.layout", True),
        ("opus_pipelines.lake.layout.Lake", True),
        ("opus_pipelines.lake.layout.Lake.publish", True),
        ("opus_pipelines.lake.layout.Lake.no_such_method", False),
        ("opus_pipelines.lake.layout.NoSuchClass", False),
        ("opus_pipelines.lake.no_such_module", False),
        ("no_such_package", False),
    ],
)
def test_what_exists(name: str, is_there: bool) -> None:
    assert exists(name) is is_there


def test_every_package_stands_in_the_layers_and_none_but_the_command_line_may_import_dagster() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    names = {f"opus_pipelines.{name}" for name in {*PACKAGES, *modules}}
    layers = contract("orchestration", "layers")
    assert sorted(layers) == sorted({*names, "jobs", "assets", "resources"})
    forbidden = contract("packages", "source_modules")
    assert sorted(forbidden) == sorted(names - {f"opus_pipelines.{name}" for name in MAY_IMPORT_DAGSTER})
    assert contract("packages", "forbidden_modules") == ["dagster"]


def test_the_house_has_these_wings() -> None:
    """No work of its own makes a new wing: it gets a room in the wing whose data it reads and makes."""
    assert set(PACKAGES) == {*WINGS, "cli"}
    assert len(WINGS) <= MAX_WINGS
    assert {path.stem for path in PACKAGE.glob("*.py")} == {"__init__", "definitions"}


def test_a_wing_imports_only_wings_below_it() -> None:
    """The order of the layers; import-linter holds it (`make imports`)."""
    wings = [layer.removeprefix("opus_pipelines.") for layer in contract("orchestration", "layers")]
    assert wings == ["cli", "definitions", "jobs", "assets", "resources", *WINGS]
    assert contract("rooms", "ancestors") == contract("packages", "source_modules")


def public_names(path: Path) -> set[str]:
    """The classes, functions and constants that a module defines for others."""
    names: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {str(getattr(node, "name", "_")), *(getattr(target, "id", "_") for target in targets)}
    return {name for name in names if not name.startswith("_")}


def test_a_public_name_stands_once_in_a_wing() -> None:
    """Two things of one name are one thing, or one of them needs another name; what only a module uses is private."""
    twice = []
    for wing in WINGS:
        counts = Counter(name for path in (PACKAGE / wing).rglob("*.py") for name in public_names(path))
        twice += [f"{wing}: {name}" for name, count in counts.items() if count > 1 and name not in SEVERAL]
    assert sorted(twice) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_comes_in_what_goes_out_and_which_door_leads_in(package: str) -> None:
    assert re.search(r"\. In: \S.*\. Out: \S.*\. Doors?: `", docstring(PACKAGE / package))


@pytest.mark.parametrize("package", ALL_PACKAGES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_the_doors_of_a_package_exist(package: Path) -> None:
    text = docstring(package)
    assert text
    own = ".".join(package.relative_to(ROOT).parts)
    missing = [door for door in doors(text) if not exists(f"{own}.{door}") and not exists(f"opus_pipelines.{door}")]
    assert missing == []


@pytest.mark.parametrize("package", sorted({*PACKAGES, *ROOMS} - WITHOUT_TESTS))
def test_the_tests_mirror_the_packages(package: str) -> None:
    assert list((ROOT / "tests" / package).rglob("test_*.py"))


@dataclass(frozen=True)
class Found:
    """What the rules ask of a file of tests: names that it imports from modules, what it replaces, and sentences."""

    imported: list[str]
    patches: list[str]
    sentences: list[str]


@cache
def found_in(path: Path) -> Found:
    """Each file is parsed and walked once for all rules."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    imported = [alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    return Found(imported, patches(nodes), sentences(nodes))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_test_imports_no_private_name(path: Path) -> None:
    """Ruff's rule SLF001 holds the same for attributes."""
    assert [name for name in found_in(path).imported if name.startswith("_")] == []


def patches(nodes: list[ast.AST]) -> list[str]:
    """What a test replaces in the code or in the system: `setattr` and its like of monkeypatch, and unittest.mock."""
    return [
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr in REPLACES or getattr(node.func.value, "id", "") in ("patch", "mock"))
        and node.func.attr not in ("setenv", "syspath_prepend", "chdir")
    ]


def test_tests_replace_only_the_world_around_the_package() -> None:
    """What is left: the terminal, the clock, the free disk, the process that `opus ui` becomes, the logger, the table
    of commands and that of versions, and one check whose result is made up.

    The number only gets smaller: a test gives an argument, a setting, a fake that is passed in, or a real failure.
    """
    found = [text for path in TESTS for text in found_in(path).patches]
    assert len(found) <= MAX_PATCHES, found


def sentences(nodes: list[ast.AST]) -> list[str]:
    """The texts of eight plain words and more that a test's asserts and `match` arguments compare with.

    What is given to a function inside an assert is an input, and counts only in `startswith` and its like.
    """
    found = []
    for node in nodes:
        if isinstance(node, ast.Assert):
            root = node.test
        elif isinstance(node, ast.keyword) and node.arg == "match":
            root = node.value
        else:
            continue
        inputs = {
            id(part)
            for call in ast.walk(root)
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") not in COMPARISONS
            for given in [*call.args, *(keyword.value for keyword in call.keywords)]
            for part in ast.walk(given)
        }
        texts = [part for part in ast.walk(root) if id(part) not in inputs]
        pieces = {id(piece) for text in texts if isinstance(text, ast.JoinedStr) for piece in text.values}
        found += [ast.unparse(text) for text in texts if id(text) not in pieces and plain_words(text) >= SENTENCE]
    return found


def plain_words(node: ast.AST) -> int:
    """How many words of letters alone a text has; numbers, paths, names of columns and code are none."""
    if isinstance(node, ast.JoinedStr):
        return sum(plain_words(value) for value in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return len(re.findall(r"(?<!\S)[('\"`]*[^\W\d_]+(?:['’-][^\W\d_]+)*[)'\"`]*[,.;:?!]?(?!\S)", node.value))
    return 0


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("assert said == 'no task of this name is known to the history'", 1),
        ("assert said.startswith(f'no task of {name} is known to the history')", 1),
        ("with pytest.raises(ValueError, match='no task of this name is known'): pass", 0),
        ("assert 'a task of four_words_that are.one or 5 more' in said", 0),
        ("assert read('It is an input of a function under test.') == []", 0),
        ("said = 'no task of this name is known to the history'", 0),
    ],
)
def test_what_counts_as_a_sentence(code: str, number: int) -> None:
    assert len(sentences(list(ast.walk(ast.parse(code))))) == number


def test_tests_assert_names_and_figures_and_not_the_sentences_around_them() -> None:
    """What is left are texts of documents that are read or written, not messages. The number only gets smaller."""
    found = [text for path in TESTS for text in found_in(path).sentences]
    assert len(found) <= MAX_SENTENCES, found


def test_the_page_lists_the_layers_from_the_top_to_the_bottom() -> None:
    rows = re.findall(r"^\| \d+ \| `(\w+)` \| \S", PAGE, re.MULTILINE)
    assert rows == [layer.removeprefix("opus_pipelines.") for layer in contract("orchestration", "layers")]


def test_the_modules_that_the_page_names_exist() -> None:
    paths = re.findall(r"`((?:opus_pipelines|assets|jobs|resources|sql|tests|docs|benchmarks|scripts)/[\w./-]*)`", PAGE)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
    names = re.findall(r"`((?:" + "|".join(PACKAGES) + r")(?:\.\w+)+)`", PAGE)
    assert names
    assert [name for name in names if not exists(f"opus_pipelines.{name}")] == []
