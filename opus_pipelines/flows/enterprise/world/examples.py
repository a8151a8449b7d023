"""The requirements of the invented enterprise with their flows, and its catalogue."""

import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from opus_pipelines.flows.enterprise.catalogue import Catalogue, read_catalogue
from opus_pipelines.flows.enterprise.flow_examples import FlowExample, part_of
from opus_pipelines.flows.enterprise.world import flow_script
from opus_pipelines.flows.enterprise.world.generator import generated

CATALOGUE_FILE = Path(__file__).parent / "catalogue.toml"
GENERATED, HANDWRITTEN, SECOND_HANDWRITTEN = KINDS = ("generated", "handwritten", "handwritten, second set")
WRITTEN_FILES = {  # kind: file, letter of its ids
    HANDWRITTEN: (Path(__file__).parent / "handwritten.toml", "h"),
    SECOND_HANDWRITTEN: (Path(__file__).parent / "handwritten_second.toml", "s"),
}
COUNT, SEED = 300, 18


@lru_cache(maxsize=1)
def world_catalogue() -> Catalogue:
    """Returns the catalogue that ships with the project."""
    return read_catalogue(CATALOGUE_FILE)


@lru_cache(maxsize=1)
def examples() -> tuple[FlowExample, ...]:
    """Returns 300 generated requirements and 100 handwritten ones; the hash of a text says which part it belongs to."""
    made = generated(world_catalogue(), COUNT, SEED)
    found = [_example(f"g{n:03}", marked, script, tags, GENERATED) for n, (marked, script, tags) in enumerate(made, 1)]
    for kind, (file, letter) in WRITTEN_FILES.items():
        for n, entry in enumerate(tomllib.loads(file.read_text("utf-8"))["requirement"], 1):
            found.append(_example(f"{letter}{n:02}", entry["text"], entry["flow"], entry.get("tags", ()), kind))
    return tuple(found)


def _example(identity: str, marked: str, script: str, tags: Sequence[str], kind: str) -> FlowExample:
    text, spans = flow_script.marked(marked)
    flow = flow_script.parse(script, spans, list(world_catalogue().subflows))
    return FlowExample(identity, text, flow, kind, part_of(text), tuple(tags))
