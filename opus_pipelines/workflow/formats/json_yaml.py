"""Writes a workflow as the JSON or YAML file that `opus score` reads; floats are read back to the last bit."""

import json
from typing import Any

import yaml

from opus_pipelines.workflow.files import WorkflowFile


def as_json(file: WorkflowFile) -> str:
    """Returns the JSON text of the file; equal workflows give equal text."""
    return json.dumps(_data(file), indent=2, ensure_ascii=False) + "\n"


def as_yaml(file: WorkflowFile) -> str:
    """Returns the YAML text of the file; it has no aliases, which the reader rejects."""
    return yaml.dump(_data(file), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _data(file: WorkflowFile) -> dict[str, Any]:
    """Returns the values that differ from the defaults, because an absent key means its default."""
    return file.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True)


class _Dumper(yaml.CSafeDumper):  # type: ignore[misc]  # the C half has no types
    """Writes every value out, and a float so that YAML 1.1 readers take it for one."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _float(dumper: yaml.CSafeDumper, value: float) -> yaml.ScalarNode:
    text = repr(value)
    if "." not in text and "e" in text:
        text = text.replace("e", ".0e")
    mantissa, mark, exponent = text.partition("e")
    sign = "" if not mark or exponent.startswith(("+", "-")) else "+"
    return dumper.represent_scalar("tag:yaml.org,2002:float", f"{mantissa}{mark}{sign}{exponent}")


_Dumper.add_representer(float, _float)
