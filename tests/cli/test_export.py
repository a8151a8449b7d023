"""The names of the export formats that the help of `opus export` shows."""

from opus_pipelines.cli.read import EXPORT_FORMATS
from opus_pipelines.workflow.formats.registry import BUILT_IN


def test_the_help_names_every_built_in_format() -> None:
    assert EXPORT_FORMATS == ("bpmn", "mermaid", "json", "yaml")
    assert tuple(BUILT_IN) == EXPORT_FORMATS
