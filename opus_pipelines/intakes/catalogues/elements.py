"""The files of a catalogue as elements of an intake, so that its rows name them and what of them was left out."""

from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.catalogues.declared import Catalogue
from opus_pipelines.intakes.elements import INHERITED, Element

MODALITY = "catalogue"


def catalogue_elements(catalogue: Catalogue) -> tuple[Element, ...]:
    """Returns one element for each file, without text: a catalogue is no procedure."""
    return tuple(
        Element(
            make_id("e", INHERITED, file.name, file.sha256),
            INHERITED,
            MODALITY,
            file.name,
            None,
            None,
            file.bytes,
            file.sha256,
            catalogue.reasons(file.name),
        )
        for file in catalogue.files
    )
