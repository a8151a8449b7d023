from hashlib import sha256
from typing import Any

import pytest

from opus_pipelines.intakes.elements import Element


@pytest.fixture
def text_elements() -> Any:
    """Elements straight from texts by role."""

    def make(texts: dict[str, Any]) -> Any:
        return [
            Element(
                f"e{role}",
                role,
                "text",
                role,
                "text/plain",
                text,
                len(text.encode()),
                sha256(text.encode()).hexdigest(),
                None,
            )
            for role, text in texts.items()
        ]

    return make
