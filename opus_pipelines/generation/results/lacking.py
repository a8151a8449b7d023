"""What an intake's own procedure lists and a workflow lacks.

Where no case of history is like the intake, the procedure decides, and all that it lists counts. Where history decides,
only what would otherwise be lost without a word counts: what neither a step of the workflow nor a rule stands for.
"""

from collections.abc import Collection
from itertools import product

from opus_pipelines.intakes.catalogues.conditions import without_joint
from opus_pipelines.intakes.catalogues.statements import Statement, prose_sentences, statements_of
from opus_pipelines.intakes.procedures.name_coverage import words
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.language.embedding.text_parts import parts
from opus_pipelines.language.word_stems import same, stems, within

MOST = 20  # statements that are named, and sentences of a procedure up to which each is taken for a step
MEANT = 0.5  # share of a statement's words above which a title with them stands for it


def lacking_steps(text: str, procedure: ParsedProcedure | None, titles: Collection[str]) -> list[str]:
    """Returns the statements of the procedure that no step of a workflow with these titles stands for, in their order.

    `text` is the procedure, and `procedure` what was read of it, None where nothing could be: then all of it counts,
    else the part that was read where it has a heading. A step stands for the clause that asks for it, and for one that
    has all words of its title. What is forbidden, and when something is done, is no step. What holds only otherwise is
    named, because a person has to say whether it does. Of a part without sentences, the heading is the statement.
    """
    steps = [step for step in procedure.steps if step.name in titles] if procedure else []
    names = [words(title) for title in titles]
    found: dict[str, None] = {}
    for sentence in _sentences(text, procedure):
        statements = [s for s in statements_of(sentence) if s.asks or s.is_named or s.is_alternative]
        statements = [s for s in statements if not s.is_negative and not s.is_fact]
        lacking = [
            s
            for s in statements
            if not any(_asks(step, s, len(statements)) for step in steps)
            and not any(name and name <= words(s.full) for name in names)
        ]
        if len(lacking) == len(statements) and any(s.asks for s in lacking):
            found.setdefault(sentence)  # as a whole, in the words of its author
        else:
            found.update((s.text, None) for s in lacking)
    return list(found)[:MOST]


def unsaid_steps(
    text: str, procedure: ParsedProcedure | None, titles: Collection[str], rules: Collection[str]
) -> list[str] | None:
    """Returns the same of an intake that is like cases of history: what no step and no rule stands for.

    `rules` are the sentences that were read as rules, whether they are applied or not: their effect is told with them.
    A title stands for a statement also where it has more than half of its words. None without a procedure, and for one
    of more than `MOST` sentences, which holds conditions and explanations more than steps.
    """
    if not 0 < len(prose_sentences(text)) <= MOST:
        return None
    names = [stems(title) for title in titles]
    told = [" ".join(stems(rule)) for rule in rules]

    def is_told(statement: str) -> bool:
        said = stems(statement)
        shared = (sum(any(same(word, of) for of in name) for word in said) for name in names)
        is_meant = any(share > MEANT * len(said) for share in shared) or any(within(name, said) for name in names)
        return is_meant or any(" ".join(said) in rule for rule in told)

    return [statement for statement in lacking_steps(text, procedure, titles) if not is_told(statement)]


def conditional_steps(text: str, procedure: ParsedProcedure | None, titles: Collection[str], known: str) -> list[str]:
    """Returns the steps of a workflow with these titles that the procedure asks for under a condition alone.

    Each has the condition in the procedure's words: "change locks: where a key is lost". A condition counts as stated,
    and is left out, where `known`, the texts of the client, has all of its words; "unless" never does. A step that
    another clause names without a condition is left out, too.
    """
    steps = [step for step in procedure.steps if step.name in titles] if procedure else []
    told, found = stems(known), dict[str, str]()
    always: set[str] = set()
    for sentence in _sentences(text, procedure):
        statements = [s for s in statements_of(sentence) if s.asks or s.may_name]
        for statement, step in product(statements, steps):
            is_named = words(step.name) <= words(statement.full)
            if not statement.only_if and is_named:
                always.add(step.name)
            is_stated = (
                within(stems(without_joint(statement.only_if)), told) and "unless" not in statement.only_if.lower()
            )
            if statement.only_if and not is_stated and (is_named or _asks(step, statement, len(statements))):
                found.setdefault(step.name, f"{step.name}: {statement.only_if}")
    return [line for name, line in found.items() if name not in always][:MOST]


def _sentences(text: str, procedure: ParsedProcedure | None) -> list[str]:
    """Returns the sentences of the part that was read where it has a heading, else all of them."""
    head = procedure.head if procedure else ""
    read = [part for part in parts(text) if part.head == head] if head else []
    if not read:
        return prose_sentences(text)
    lines = [sentence.text for part in read for sentence in part.sentences] or [part.head or "" for part in read]
    return [sentence for line in lines if line for sentence in prose_sentences(line) or [line]]


def _asks(step: ProcedureStep, statement: Statement, statements: int) -> bool:
    """Tells whether a statement, one of several of a sentence, asks for a step."""
    asked = step.sentence or ""
    if asked == statement.full:
        return True
    is_its_clause = statements == 1 or not set(stems(step.name)).isdisjoint(stems(statement.full))
    return statement.text in asked and is_its_clause
