"""What an intake's own procedure lists and a workflow lacks, where no case of history is like the intake."""

from collections.abc import Collection, Sequence

from opus_pipelines.catalogues.prose import sentences_of
from opus_pipelines.embedding.text_parts import Part
from opus_pipelines.procedures.name_coverage import words
from opus_pipelines.procedures.reading import ParsedProcedure

MOST = 20  # statements that are named


def lacking_steps(parts: Sequence[Part], procedure: ParsedProcedure | None, titles: Collection[str]) -> list[str]:
    """Returns the statements of the procedure that no step of a workflow with these titles stands for, in their order.

    `procedure` is the procedure as it was read, None where it could not be: then all of its parts count, else the part
    that was read where it has a heading. A step stands for the sentence that asks for it, and for one that has all
    words of its title. Of a part without sentences, the heading is the statement.
    """
    head = procedure.head if procedure else ""
    read = [part for part in parts if head and part.head == head] or [part for part in parts if not part.is_title]
    covered = [step.sentence for step in procedure.steps if step.sentence] if procedure else []
    names = [words(title) for title in titles]
    found: dict[str, None] = {}
    for part in read:
        lines = [sentence.text for sentence in part.sentences] or [part.head or ""]
        for statement in (s for line in lines for s in sentences_of(line) or [line]):
            is_covered = any(statement in text or text in statement for text in covered)
            if statement and not is_covered and not any(name and name <= words(statement) for name in names):
                found.setdefault(statement)
    return list(found)[:MOST]
