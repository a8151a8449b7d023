"""The options with which every XML file that came from outside is parsed.

Nothing outside the file is fetched (no network, no external DTD), entities stay unexpanded, and libxml2 keeps its
limits on depth and on the length of a text.
"""

from typing import Any

SAFE_XML: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
