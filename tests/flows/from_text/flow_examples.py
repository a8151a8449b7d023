"""A small catalogue and an encoder of words, so that the tests of flow generation load no model."""

import re
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from opus_pipelines.flows.from_text.activities import ActivityCatalogue, catalogue_of

ENTRIES = (
    ("Jira_Issue__2_0_0__create_Issue", "Create an issue in Jira"),
    ("Jira_Issue__2_0_0__retrievewithwhere_Issue", "Retrieve all Jira issues"),
    ("GitHub_Issue__3_0_0__create_Issue", "Create an issue in GitHub"),
    ("GitHub_Issue__3_0_0__retrievewithwhere_Issue", "Retrieve all the issues in GitHub"),
    ("Slack_message__3_0_0__create_message", "A new message is posted in Slack"),
    ("Slack_channel__3_0_0__retrievewithwhere_channel", "Retrieve channels from Slack"),
    ("Trello_Board__2_0_0__create_Board", "Create a board in Trello"),
    ("Trello_Board__2_0_0__deletewithwhere_Board", "Delete a board from Trello"),
    ("monday_com_Board__2_0_0__create_Board", "Create a board in Monday.com"),
    ("Marketo_leads__3_0_0__retrievewithwhere_leads", "Retrieve all leads from Marketo"),
    ("Salesforce_Lead__5_0_0__create_Lead", "Create a lead in Salesforce"),
    ("Gmail_mail__2_0_0__create_mail", "Send an email message from Gmail."),
)


class WordEncoder:
    """Encodes a text as the set of its words, each at a place that its hash gives."""

    name, max_tokens, dimension = "words", 512, 256

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"[a-z]+", text.lower()):
                row[zlib.crc32(word.rstrip("s").encode()) % self.dimension] += 1.0
            row[0] += 0.01
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def catalogue() -> ActivityCatalogue:
    return catalogue_of({"id": name, "description": text} for name, text in ENTRIES)
