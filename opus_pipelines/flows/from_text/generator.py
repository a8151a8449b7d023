"""Writes a flow for an utterance, and edits one, without a language model.

`learn` aligns the clauses of known utterances with the steps of their flows: the ranker compares clauses with them, and
the classifier of user tasks is trained on them and on clauses made from the catalogue. Only activities of the
catalogue can come out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.from_text.activities import HTTP_NAME, Activity, ActivityCatalogue, split_words
from opus_pipelines.flows.from_text.activity_choice import (
    ActivityRanker,
    Ranked,
    UserTaskClassifier,
    examples,
    pairs,
    shown_object,
    user_task_text,
)
from opus_pipelines.flows.from_text.activity_features import SPEAKING, FeatureTable, Query, noun_phrase
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.structure import (
    LOSS,
    TASK,
    Account,
    FlowBuilder,
    Parts,
    Thing,
    asks_for_several,
    quoted,
    result_thing,
    several_name,
    singular,
    unsaid,
)
from opus_pipelines.flows.text.clause_words import PREPOSITIONS
from opus_pipelines.flows.text.clauses import CONDITION, LOOP, STEP, WHILE, Clause
from opus_pipelines.flows.text.operations import lemma_of_verb, operations_of_verb
from opus_pipelines.language.word_stems import EMPTY, stem
from opus_pipelines.lwm.interface import Usage
from opus_pipelines.workflow.blocks.expressions import Path, is_name
from opus_pipelines.workflow.blocks.model import (
    Block,
    Call,
    Flow,
    Statement,
    UserTask,
    activities,
    identified,
    read_before_set,
    walk,
)

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder

MADE = 400  # clauses made from the catalogue
SEED = 17
USER_TASK = 0.6  # the probability from which a clause is a user task
LEAST_LISTED = 0.25  # the probability of an activity from which the list of a loop is retrieved by a step of its own
MAX_CLAUSES = 60
GONE = ("delete", "purge", "redact")  # operations after which something is gone
NEAREST = 10  # activities among which one is looked for that the clause may mean
LEAST_INSTEAD = 0.3  # the share of those that may be meant from which another activity than the nearest one is taken
EXACT = frozenset(["copy", "move", "rename", "download", "share", "invite", "publish"])  # verbs that mean one operation
UNSURE = 0.2  # how certain a step is for which no activity may be meant
LEAST_CONFIDENCE = 0.9  # below it a flow is a draft with questions
# Words that restrict the object of a step, and words that add nothing to it
RESTRICTING = frozenset(
    "that which who whose except unless without but only older newer above below over under".split()
)
PLAIN = frozenset(
    "new another existing latest available corresponding first second last called named own whole entire single "
    "copy list details set".split()
)
_NUMBERS = {"two": 2, "2": 2, "three": 3, "3": 3, "four": 4, "4": 4, "five": 5, "5": 5, "both": 2}


class GenerationError(OpusError):
    """No flow can be written; the message says why and what to do."""


@dataclass(frozen=True)
class Made:
    """A flow, the operations of an edit as lines, and each step that was chosen with its probability, as they are read.

    `accounts` say what became of each clause, `confidence` how likely the flow is right, and `doubt` what to ask first
    where that is little. Of a language model: how
    many calls were repaired, what the answer took, and its seconds when it was asked for.
    """

    flow: Flow
    operations: tuple[str, ...] = ()
    steps: tuple[tuple[str, float], ...] = ()
    repaired: int | None = None
    usage: Usage | None = None
    seconds: float | None = None
    accounts: tuple[Account, ...] = ()
    confidence: float | None = None
    doubt: str = ""

    @property
    def questions(self) -> tuple[str, ...]:
        """What a person must decide; a flow with a question is a draft."""
        asked = dict.fromkeys(account.question for account in self.accounts if account.question)
        return tuple(asked) or ((self.doubt,) if self.doubt else ())

    @property
    def accounted(self) -> float:
        """The share of the clauses that are in the flow, or of which it is said that they are not."""
        told = [a for a in self.accounts if a.became != LOSS or a.question]
        return len(told) / len(self.accounts) if self.accounts else 1.0


class FlowWriter:
    """What is learnt from a catalogue and example flows. `learn` makes one."""

    def __init__(self, ranker: ActivityRanker, tasks: UserTaskClassifier) -> None:
        self.ranker, self.tasks = ranker, tasks

    @property
    def catalogue(self) -> ActivityCatalogue:
        """The activities that may be called."""
        return self.ranker.table.catalogue

    def new(self, utterance: str) -> Made:
        """Returns the flow that an utterance asks for.

        Raises UtteranceError for an utterance that cannot be read, and GenerationError where it asks for no step.
        """
        clauses = self.ranker.table.names.clauses(utterance)
        drafter = Drafter(self, utterance, None)
        block = drafter.block(clauses[:MAX_CLAUSES])
        if not block:
            raise GenerationError("the utterance asks for no step; say what the flow should do, verb first")
        if not any(isinstance(statement, Call) for statement in walk(block)) and drafter.open:
            raise GenerationError(
                f"nothing says what {drafter.open!r} is, and no activity fits; name what is to be done to what"
            )
        return drafter.made(Flow(block))


class Drafter:
    """Makes the statements of one utterance and remembers what was used last."""

    def __init__(self, writer: FlowWriter, utterance: str, prior: Flow | None) -> None:
        self.writer = writer
        by_id = writer.catalogue.by_id
        self.used = list(dict.fromkeys(activities(prior))) if prior else []
        self.prior = frozenset(by_id[a].application for a in self.used if a in by_id) - {""}
        self.named = writer.ranker.table.names.named(utterance)
        self.carried, self.open = "", ""
        self.things = things_of(prior, writer.catalogue) if prior else []
        self.chosen: list[tuple[str, float]] = []
        self.certainties: list[tuple[float, str]] = []
        self.accounts: list[Account] = []
        self.utterance = utterance
        self.taken = {thing.variable for thing in self.things}

    def block(self, clauses: Sequence[Clause]) -> Block:
        """Returns the statements of the clauses."""
        clauses = [each for clause in clauses for each in [clause] * times(clause)]
        table = self.writer.ranker.table
        table.encode([self.query(clause) for clause in clauses if clause.words])
        parts = Parts(self.step, self.listing, self.accounts)
        return FlowBuilder(parts, self.things).build(clauses)

    def made(self, flow: Flow, operations: tuple[str, ...] = ()) -> Made:
        """Returns the flow with what became of each clause, and with what is not sound about it."""
        self.accounts += _undefined(flow)
        steps, certain = tuple(self.chosen), confidence_of(self.certainties, self.accounts)
        doubt = ""
        if certain < LEAST_CONFIDENCE:
            doubt = min(self.certainties, default=(0.0, "does the flow branch and repeat as you mean it?"))[1]
        return Made(identified(flow), operations, steps, None, None, None, tuple(self.accounts), certain, doubt)

    def query(self, clause: Clause) -> Query:
        """Returns the query of a clause where the drafter stands."""
        return Query(clause, self.carried, self.named, self.prior, frozenset(self.used))

    def step(self, clause: Clause, things: Sequence[Thing]) -> tuple[Statement, Thing] | None:
        """Returns the call or user task that a clause asks for."""
        self.taken |= {thing.variable for thing in things}
        pronouns = [word.lower() for word in clause.words[1:] if word.lower() in ("it", "them", "these", "those")]
        self.open = self.open or (pronouns[0] if pronouns and not things else "")
        clause = resolved(clause, things)
        query = self.query(clause)
        human = self.writer.tasks.probability(query)
        near = self.writer.ranker.ranked(query, NEAREST)
        best = self.meant(query, near)
        listed = ", ".join(each.activity for each in near[:3])
        account = self.account(clause, best.activity) if best is not None else None
        gone = account is not None and self.writer.catalogue.by_id[account.result].operation in GONE
        several = asks_for_several(clause) or not RESTRICTING.isdisjoint(word.lower() for word in clause.words)
        elsewhere = best is not None and self.carried not in (
            "",
            self.writer.catalogue.by_id[best.activity].application,
        )
        unnamed = elsewhere and several and not self.writer.ranker.table.names.positions(clause.text)
        if gone and (unnamed or (several and account is not None and account.lost)):
            best = None  # what is to be deleted is said more narrowly than the activity can be told
        if human >= USER_TASK or best is None or account is None:
            task, thing = self.user_task(clause)
            doubt = f"who or what does {quoted(clause)}? The nearest activities are {listed}"
            self.certainties.append((human if best is not None else UNSURE, doubt))
            self.accounts.append(Account(clause.text, TASK, task.text, question=doubt if best is None else ""))
            return task, thing
        doubt = f"is it {best.activity} that {quoted(clause)} means? The nearest activities are {listed}"
        self.certainties.append((best.probability * (1 - human), doubt))
        statement, thing = self.call(best.activity, best.probability)
        self.accounts.append(account)
        return statement, replace(thing, plural=thing.several and asks_for_several(clause))

    def meant(self, query: Query, near: Sequence[Ranked]) -> Ranked | None:
        """Returns the best of the nearest activities that the clause may mean; None where it may mean none of them.

        Of activities of one application that do the same, the one whose object has no word that nobody has said comes
        first; and "copy it to a new folder" asks for the activity that copies where there is one.
        """
        by_id, verb = self.writer.catalogue.by_id, lemma_of_verb(query.clause.verb)
        places = self.writer.ranker.table.places
        allowed = self.writer.ranker.table.allowed(query)
        fitting = [each for each in near if allowed[places[each.activity]]]
        if not fitting:
            return None
        best = by_id[fitting[0].activity]
        if fitting[0] is not near[0] and fitting[0].probability < LEAST_INSTEAD * sum(e.probability for e in fitting):
            return None
        said = {stem(word) for word in query.clause.words}
        for each in fitting[1:]:
            other = by_id[each.activity]
            if other.application != best.application:
                continue
            alike = other.operation == best.operation and set(other.object_stems) < set(best.object_stems)
            if alike and not (set(best.object_stems) - set(other.object_stems)) & said:
                return replace(each, probability=fitting[0].probability)
            exact = best.operation != verb == other.operation and set(other.object_stems) <= set(best.object_stems)
            if exact and verb in EXACT:
                return each
        return fitting[0]

    def account(self, clause: Clause, name: str) -> Account:
        """Returns what a clause became that calls an activity, with the words by which it restricts its object."""
        activity = self.writer.catalogue.by_id[name]
        words = [word for word in clause.words if word.lower() not in (clause.verb.lower(), *PLAIN)]
        end = next((i for i, word in enumerate(words) if i and word.lower() in PREPOSITIONS), len(words))
        begin = next((i for i, word in enumerate(words) if word.lower() in RESTRICTING), len(words))
        named = [word for word in words if self.writer.ranker.table.names.named(word)]
        said = (activity.text, " ".join(split_words(activity.id)), *named, *activity.stems)
        addressed = lemma_of_verb(clause.verb) in SPEAKING  # "alert the duty manager" restricts nothing
        plain = [word for word in words[: min(begin, end)][:-1] if word.islower()]
        lost = () if addressed else unsaid([*plain, *words[begin:]], *said)
        question = f"what does {' '.join(lost)!r} mean in {quoted(clause)}? {name} does not say it" if lost else ""
        return Account(clause.text, STEP, name, lost, question)

    def user_task(self, clause: Clause) -> tuple[UserTask, Thing]:
        """Returns a user task with the clause as its text."""
        text = user_task_text(clause)
        noun = next((word.lower() for word in reversed(noun_phrase(clause).words) if is_name(word.lower())), "task")
        statement = UserTask(text, self.fresh(noun))
        self.chosen.append((f"user task: {text}", 1.0))
        stems = frozenset(stem(word) for word in noun_phrase(clause).words)
        for application in self.writer.ranker.table.names.positions(clause.text):
            self.carried = application[1]
        return statement, result_thing(statement, stems, False)

    def call(self, name: str, probability: float) -> tuple[Call, Thing]:
        """Returns a call of an activity with a new variable."""
        activity = self.writer.catalogue.by_id[name]
        self.carried = activity.application or self.carried
        self.used.append(name)
        self.chosen.append((name, probability))
        statement = Call(name, self.fresh(variable_name(activity)))
        shown = shown_object(activity)
        about = next((place for place, word in enumerate(shown) if word in ("about", "of")), -1)
        return statement, replace(thing_of(statement, activity), shown=tuple(shown[about + 1 :]))

    def listing(self, clause: Clause) -> tuple[Call, Thing] | None:
        """Returns the call that retrieves what a loop or condition speaks of; None where no activity fits."""
        words = tuple(word for word in clause.words if word.lower() not in ("each", "every"))
        query = self.query(Clause(STEP, ("retrieve", "all", *words), "retrieve"))
        named = self.writer.ranker.table.names.named(" ".join(words))
        best = self.writer.ranker.ranked(query, 1)[0]
        activity = self.writer.catalogue.by_id[best.activity]
        stems = {stem(word) for word in words if word.lower() not in EMPTY}
        fits = activity.operation == "retrieve" and bool(stems & {*activity.object_stems, *activity.described_stems})
        if not fits or (max(named.values(), default=0.0) < 0.3 and best.probability < LEAST_LISTED):
            return None
        statement, thing = self.call(best.activity, best.probability)
        return statement, replace(thing, plural=True)

    def fresh(self, name: str) -> str:
        """Returns the name, with a number where it is taken."""
        number, candidate = 2, name
        while candidate in self.taken:
            candidate, number = f"{name}_{number}", number + 1
        self.taken.add(candidate)
        return candidate


def confidence_of(certainties: Sequence[tuple[float, str]], accounts: Sequence[Account]) -> float:
    """Returns how likely a flow is right whose steps are so certain and whose clauses became this.

    The figures are those of a logistic regression over 479 utterances that were not learnt from (calibration error .04
    when each fifth of them is left out). Of those above `LEAST_CONFIDENCE` without a question, 4 in 100 are wrong.
    """
    import math

    doubts = sum(bool(account.question) for account in accounts)
    logic = sum(account.became in (CONDITION, LOOP, WHILE) for account in accounts)
    people = sum(account.became == TASK for account in accounts)
    least = max(0.01, min((certain for certain, _ in certainties), default=1.0))
    score = 2.51 + 0.71 * math.log(least) - 0.66 * doubts - 0.69 * logic - 1.47 * people
    return 1 / (1 + math.exp(-score))


def _undefined(flow: Flow) -> list[Account]:
    """A question for each variable that a step reads and no step before it sets."""
    names = dict.fromkeys(name for _, name in read_before_set(identified(flow)))
    asked = "No step before it retrieves or makes it"
    return [Account(name, LOSS, question=f"what is {name!r}? {asked}") for name in names]


def times(clause: Clause) -> int:
    """Returns how often a step is done: "create two leads" is two steps; 1 where no small number stands by the verb."""
    place = 0 if clause.shares_verb else 1
    word = clause.words[place].lower() if clause.kind == STEP and len(clause.words) > place + 1 else ""
    creates = operations_of_verb(clause.verb)[:1] in (("create",), ("upload",), ("send",), ("add",), ("put",))
    return _NUMBERS.get(word, 1) if creates else 1


def resolved(clause: Clause, things: Sequence[Thing]) -> Clause:
    """Returns a clause whose pronoun object is replaced by what was made or retrieved last: "invoke it"."""
    words = list(clause.words)
    if not things or len(words) < 2:
        return clause
    named = list(things[-1].shown) or things[-1].variable.rstrip("_0123456789").split("_")
    last = words[-1].lower()
    if last in ("them", "these", "those") and len(words) > 3 and words[-2].lower() == "for":
        return replace(clause, words=tuple(words[:-2]))  # "open a ticket for them" makes something new
    if last in ("it", "them", "this", "these", "those"):
        return replace(clause, words=(*words[:-1], "the", *named))
    lower = [word.lower() for word in words]
    if lower[1] == "one" and (len(words) == 2 or lower[2] in PREPOSITIONS):
        return replace(clause, words=(words[0], "a", *named[:-1], singular(named[-1]), *words[2:]))
    if last in ("one", "another") and len(words) <= 4:
        return replace(
            clause, words=(*words[: -1 if lower[-2:-1] == ["new"] else 1], "new", *named[:-1], singular(named[-1]))
        )
    if lower[1] in ("it", "them") and words[1] != "IT" and len(words) > 2 and "new" not in lower:
        return replace(clause, words=(words[0], "the", *named, *words[2:]))
    return clause


def variable_name(activity: Activity) -> str:
    """Returns a name for the result of an activity: its object, in the plural where it retrieves."""
    named = activity.object.removesuffix("_model")
    plain = split_words(named) if named and not HTTP_NAME.fullmatch(named) else shown_object(activity)
    words = [word.lower() for word in plain if word.isascii() and word.isalnum()][-3:] or ["result"]
    single = "_".join([*words[:-1], singular(words[-1])])
    name = several_name(single) if activity.operation == "retrieve" else single
    return name if is_name(name) else "result"


def thing_of(call: Call, activity: Activity | None) -> Thing:
    """Returns what the variable of a call holds."""
    own = frozenset(stem(word) for word in call.variable.split("_"))
    if activity is None:
        return result_thing(call, own, True)
    several = activity.operation == "retrieve"
    stems = own | {*activity.object_stems, *activity.described_stems}
    return result_thing(call, stems, several, call.variable.endswith("s") and not call.variable.endswith("ss"))


def things_of(flow: Flow, catalogue: ActivityCatalogue) -> list[Thing]:
    """Returns the variables of a flow; an item of a loop is one of the loop's things."""
    from opus_pipelines.workflow.blocks.model import For

    things: list[Thing] = []
    for statement in walk(flow.body):
        if isinstance(statement, Call):
            things.append(thing_of(statement, catalogue.by_id.get(statement.activity)))
        elif isinstance(statement, UserTask):
            things.append(result_thing(statement, frozenset(stem(w) for w in statement.text.split()), False))
        elif isinstance(statement, For):
            own = frozenset([stem(statement.variable)])
            if isinstance(statement.iterable, Path):
                name = statement.iterable.parts[0]
                source = next((t for t in reversed(things) if t.variable == name), None)
                own |= source.stems if source else frozenset()
            things.append(Thing(statement.variable, own, loop=statement.variable))
    return things


def learn(
    catalogue: ActivityCatalogue, tasks: Sequence[FlowTask], encoder: "TextEncoder", table: FeatureTable | None = None
) -> FlowWriter:
    """Learns from tasks whose flows are known; without any, from the catalogue alone. The same input gives the same.

    `table` is one of the same catalogue, whose vectors are used again.
    """
    table = table or FeatureTable(catalogue, encoder)
    taught = [task for task in tasks if task.expected is not None and task.unread_prior is None]
    found = [pair for task in taught for pair in pairs(task, ActivityRanker(table))]
    aligned = [(query.clause.text, activity) for query, activity in found if activity is not None]
    ranker = ActivityRanker(table.with_examples(aligned))
    classifier = UserTaskClassifier(ranker)
    classifier.train(found, examples(catalogue, MADE, SEED), SEED)
    return FlowWriter(ranker, classifier)
