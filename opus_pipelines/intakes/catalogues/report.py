"""What was read of a catalogue, in lines for a person."""

from collections import Counter

from opus_pipelines.core.formatting import clean
from opus_pipelines.intakes.catalogues.declared import Catalogue


def catalogue_lines(catalogue: Catalogue) -> list[str]:
    """Returns a line for each file with its format and its number of tools, and a line for each defect."""
    tools = Counter(task.file for task in catalogue.tasks)
    lines = [f"{clean(f.name)}: {f.format}, {tools[f.name]:,} tools" for f in catalogue.files]
    priced = sum(task.price_usd is not None for task in catalogue.tasks)
    described = sum(task.description is not None for task in catalogue.tasks)
    if catalogue.files:
        lines.append(
            f"{len(catalogue.tasks):,} declared tasks: {described:,} with a description, {priced:,} with a price"
        )
    return lines


def catalogue_complaints(catalogue: Catalogue) -> list[str]:
    """Returns a line for each thing of the files that could not be used."""
    return [clean(f"{one.file}: {one.text}") for one in catalogue.left_out]
