"""What pyproject.toml cannot say of the wheel: it keeps assets, jobs, resources and sql below opus_pipelines.

They stand at the top of a checkout, and their names are too general for the top of an environment. Everything else is
in pyproject.toml; opus_pipelines/core/checkout.py finds them again. An editable install uses the checkout as it is.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
FOLDERS = {"assets": "*.py", "jobs": "*.py", "resources": "*.py", "sql": "*.sql"}
FILES = ("dagster.yaml", "workspace.yaml")


class BuildWithCheckout(build_py):
    """Builds the package, and copies what stands beside it into its folder `_checkout`."""

    def run(self) -> None:
        """Builds what setuptools builds, then adds the copies; an editable install needs none."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "opus_pipelines" / "_checkout"
        shutil.rmtree(target, ignore_errors=True)
        wanted = [file for folder, form in FOLDERS.items() for file in (ROOT / folder).rglob(form)]
        for file in [*wanted, *(ROOT / name for name in FILES)]:
            copy = target / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


setup(cmdclass={"build_py": BuildWithCheckout})
