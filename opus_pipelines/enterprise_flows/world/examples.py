"""The requirements of the invented enterprise with their flows, and its catalogue."""

from functools import lru_cache
from pathlib import Path

from opus_pipelines.enterprise_flows.catalogue import Catalogue, read_catalogue

CATALOGUE_FILE = Path(__file__).parent / "catalogue.toml"


@lru_cache(maxsize=1)
def world_catalogue() -> Catalogue:
    """Returns the catalogue that ships with the project."""
    return read_catalogue(CATALOGUE_FILE)
