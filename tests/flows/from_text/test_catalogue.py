"""The catalogue of activities: what ids and descriptions say, near duplicates, and files that are none."""

from pathlib import Path

import pytest

from opus_pipelines.flows.from_text.activities import (
    ApplicationNames,
    CatalogueError,
    activity_of,
    catalogue_of,
    read_catalogue,
)
from opus_pipelines.flows.scores import merged_versions
from tests.flows.from_text.flow_examples import catalogue


@pytest.mark.parametrize(
    ("name", "description", "expected"),
    [
        ("Box_File__3_0_0__DOWNLOADFILE_File", "Download a file", ("Box", "File", "download", "3.0.0")),
        ("ServiceNow_sys_user__5_0_0__create_sys_user", "Create it", ("ServiceNow", "sys_user", "create", "5.0.0")),
        ("sendInvoice", "Sends it", ("", "invoice", "send", "")),
    ],
)
def test_an_id_states_application_object_and_operation(
    name: str, description: str, expected: tuple[str, str, str, str]
) -> None:
    activity = activity_of(name, description)
    assert (activity.application, activity.object, activity.operation, activity.version) == expected


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"id": "import os", "description": ""}],
        [{"id": "user_task", "description": ""}],
        [{"id": "a_b", "description": 3}],
        [{"id": "a_b"}, {"id": "a_b"}],
    ],
)
def test_a_catalogue_with_a_wrong_entry_is_refused(entries: list[dict[str, object]]) -> None:
    with pytest.raises(CatalogueError):
        catalogue_of(entries)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', "[" * 5000])
def test_a_file_that_is_no_catalogue_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "catalogue.json"
    file.write_text(text)
    with pytest.raises(CatalogueError):
        read_catalogue(file)


def test_versions_of_one_activity_are_merged_and_others_are_not() -> None:
    found = catalogue_of(
        [
            {"id": "Slack_message__3_0_0__create_message", "description": "Post a message"},
            {"id": "Slack_Message__2_0_0__create_Message", "description": "Post a message"},
            {"id": "Slack_message__3_0_0__deletewithwhere_message", "description": "Delete a message"},
        ]
    )
    merged = merged_versions(found)
    assert merged["Slack_Message__2_0_0__create_Message"] == "Slack_message__3_0_0__create_message"
    assert merged["Slack_message__3_0_0__deletewithwhere_message"] == "Slack_message__3_0_0__deletewithwhere_message"


def test_a_text_names_applications_as_people_write_them() -> None:
    names = ApplicationNames(catalogue())
    assert names.named("a board in monday.com") == {"monday_com": 1.0}
    assert names.named("two github issues") == {"GitHub": 1.0}
    assert names.named("a board") == {}
