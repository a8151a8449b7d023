"""The table of coverage by package."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "coverage_by_package.py"
spec = importlib.util.spec_from_file_location("coverage_by_package", SCRIPT)
assert spec
assert spec.loader
coverage_by_package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage_by_package)


def counted(run: int, lines: int) -> dict[str, dict[str, int]]:
    return {"summary": {"covered_lines": run, "num_statements": lines}}


def test_sub_packages_count_with_their_package_and_root_modules_with_their_folder() -> None:
    files = {
        "opus_pipelines/lake/layout.py": counted(8, 10),
        "opus_pipelines/intakes/documents/pdf.py": counted(1, 4),
        "opus_pipelines/intakes/intake.py": counted(4, 4),
        "opus_pipelines/definitions.py": counted(0, 2),
        "assets/wkg.py": counted(0, 0),
    }
    assert coverage_by_package.table({"files": files}) == [
        "package                   run  lines  share",
        "assets                      0      0   0.0%",
        "opus_pipelines              0      2   0.0%",
        "opus_pipelines/intakes      5      8  62.5%",
        "opus_pipelines/lake         8     10  80.0%",
        "total                      13     20  65.0%",
    ]
