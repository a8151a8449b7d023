"""From clauses to a block: loops, conditions and else by the order of the clauses, and the variables that they read.

A builder keeps the blocks that are open. What a clause asks for comes from the given functions, so that the builder
knows nothing of activities: `step` makes a statement of a step clause, `listing` the call that retrieves what a loop
runs over. A thing is what a variable of the flow holds.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lemminflect import getAllLemmas

from opus_pipelines.flows.from_text.activity_features import noun_phrase
from opus_pipelines.flows.text.clause_words import DETERMINERS
from opus_pipelines.flows.text.clauses import CONDITION, ELSE, LOOP, START, STEP, WHILE, Clause
from opus_pipelines.flows.text.conditions import (
    NUMBER,
    OWNERS,
    ConditionText,
    described,
    number_of,
    read_condition,
    undescribed,
)
from opus_pipelines.flows.text.operations import operations_of_verb
from opus_pipelines.language.grammar.modality import is_base, is_participle, may_be_third_person
from opus_pipelines.language.word_stems import EMPTY, stem
from opus_pipelines.workflow.blocks.expressions import And, Comparison, Expression, Not, Path, is_name, negated
from opus_pipelines.workflow.blocks.formats.python_ir import write_condition
from opus_pipelines.workflow.blocks.model import Block, Branch, Call, For, If, Parallel, Statement, UserTask, While


@dataclass(frozen=True)
class Thing:
    """A variable, the stems of what it holds, and whether it is one item of a loop or a result that may be several.

    `plural` says that the text asks for several ("all the tickets"), so that a condition on it holds for each of them,
    and `asked` which of them it asks for ("the hot leads").
    """

    variable: str
    stems: frozenset[str]
    several: bool = False
    loop: str = ""
    plural: bool = False
    shown: tuple[str, ...] = ()
    asked: ConditionText | None = None


@dataclass(frozen=True)
class Account:
    """What became of a clause: a step, a user task, a condition, a loop, an else, the start of the flow, or a loss.

    `lost` are its words that the flow does not say, and `question` is what a person must decide; "" where all is clear.
    """

    text: str
    became: str
    result: str = ""
    lost: tuple[str, ...] = ()
    question: str = ""


_NO_FILTER = frozenset("new existing other same corresponding available whole first last next latest own".split())
LOSS, TASK, NOTHING = "loss", "user task", "not to be done"
# What is said not to be done: by its first words, by a verb that is denied, by what stays, or by a negation in front of
# any relative clause
_NOT_DONE = re.compile(
    r"(?:do not|don't|never|no need to|avoid|(?:do )?nothing\b|ignore|skip|spare|(?:done|join|continue|proceed)$|"
    r"thanks|thank you|thx|leave (?!an? )\w|.*\balone$)|"
    r".*?\b(?:must|should|shall|may|can|need)(?: not|n't)\b|.*\b(?:gets?|needs?) (?:nothing|no\b)|"
    r".*\b(?:stays?|remains?|left)\b(?: \w+)? (?:like|as|alone)\b|"
    r"(?:(?!\b(?:that|which|who|whose|where|because|so)\b|[\"']).)*?(?<!with )(?<!have )(?<!has )"
    r"(?:\b(?:no|nothing|never|not)\b|n't\b)",
    re.IGNORECASE,
)
_SHORT = 6  # words of a clause that says no more than what is not to be done
# Words of a condition or a loop that its operator, its marker or its variable say.
_SAID = frozenset(
    "more less greater higher lower bigger smaller larger fewer older newer than above over below under least most at "
    "exceed equal true false yes no not none never currently still already set one ones contain include mention there "
    "exist found any all each every them these those that which who whose with has have had item record status "
    "day hour week month minute year empty null marked nobody flagged labeled whether thing".split()
)


def unsaid(words: Iterable[str], *said: str) -> tuple[str, ...]:
    """Returns the words with a meaning of their own that none of the texts has."""
    known = {stem(part) for text in said for part in re.findall(r"[A-Za-z]+|\d+", text)}
    plain = (NUMBER.sub(lambda n: str(number_of(n)), word.strip("\"'").lower()) for word in words)
    parts = [word for each in plain for word in re.findall(r"[^\W_]+", each.removesuffix("'s").replace("n't", ""))]
    kept = [word for word in parts if len(word) > 1 and word not in EMPTY and word not in _SAID]
    return tuple(word for word in dict.fromkeys(kept) if stem(word) not in known and stem(word) not in _SAID)


def head_of(words: Sequence[str]) -> list[str]:
    """Returns the words of a noun without determiners, restrictions and what stands behind it."""
    end = next(
        (
            i
            for i, word in enumerate(words)
            if word.lower()
            in ("in", "from", "on", "that", "which", "who", "whose", "with", "within", "marked", "flagged")
            or (i and _is_filter(words, i))
        ),
        len(words),
    )
    if words and words[0].lower() in ("whose", "that", "which", "who", "with"):
        return []
    noun = undescribed(words[: end or len(words)])
    return [word for word in noun if word.lower() not in ("one", "single", *EMPTY)]


def filter_of(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the words of a relative clause as a condition: "lead that has a hot rating" → lead has a hot rating."""
    lower = [word.lower() for word in words]
    if lower[:1] == ["whose"]:
        return ("its", *words[1:])
    if lower[:1] and lower[0] in ("that", "which", "who"):
        return ("it", *words[1:])
    if lower[:1] == ["with"]:
        return ("it", "has", *words[1:])
    if lower[:1] and lower[0] in ("marked", "flagged"):
        return ("it", "is", *words[1:])
    for place in range(1, len(words)):
        if lower[place] in ("that", "which", "who") and place + 1 < len(words):
            return (*words[:place], *words[place + 1 :])
        if lower[place] == "whose" and place + 1 < len(words):
            return ("its", *words[place + 1 :])
        if lower[place] == "with" and len(words) - place >= 3:
            return (*words[:place], "has", *words[place + 1 :])
        if lower[place] in ("marked", "flagged", "labeled", "labelled") and lower[place + 1 : place + 2] == ["as"]:
            return (*words[:place], "is", *words[place + 2 :])
        if _is_filter(words, place):
            if lower[place] in OWNERS and lower[place + 1] in ("by", "to"):
                return (*words[:place], "has", OWNERS[lower[place]], *words[place + 2 :])
            return (*words[:place], "is", *words[place:])
    return ()


_COMPARATIVES = ("larger", "bigger", "smaller", "greater", "higher", "lower", "older", "newer", "more", "less")


def _is_filter(words: Sequence[str], place: int) -> bool:
    """Whether a participle with its complement or a comparison begins at the place: "owned by Ann", "larger than 5"."""
    word, following = words[place].lower(), words[place + 1].lower() if place + 1 < len(words) - 1 else ""
    return (word in OWNERS and following in ("by", "to")) or (word in _COMPARATIVES and following == "than")


def asks_for_several(clause: Clause) -> bool:
    """Returns whether the object of a clause is plural: "all the users", "files"."""
    words = noun_phrase(clause).words
    last = words[-1].lower() if words else ""
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))


def adjectives_of(words: Sequence[str]) -> list[str]:
    """Returns the adjectives and participles before a noun that say which of the things are meant: "stale boards"."""
    before = [word for word in words[:-1] if word.islower() and word not in EMPTY and word not in _NO_FILTER]
    return [word for word in before if "ADJ" in getAllLemmas(word) or (is_participle(word) and word.endswith("ed"))]


def place_of(words: Sequence[str]) -> Sequence[str]:
    """Returns the place with a proper name at the end of the words: "a ticket is old in Zendesk" → in Zendesk."""
    found = [i for i in range(1, len(words) - 1) if words[i].lower() in ("in", "on", "from")]
    return words[found[-1] :] if found and len(words) - found[-1] <= 4 and words[found[-1] + 1][0].isupper() else ()


def unfiltered(words: Sequence[str]) -> list[str]:
    """Returns the words of an object with its place and without what restricts it: "files in Box that are old"."""
    lower = [word.lower() for word in words]
    cuts = ("that", "which", "who", "whose", "with", "marked", "flagged", "labeled", "labelled")
    end = next((i for i in range(1, len(words)) if lower[i] in cuts or _is_filter(words, i)), len(words))
    return undescribed(words[:end])


def item_name(words: Sequence[str], source: Thing | None) -> str:
    """Returns a name for one item: the last word in the singular."""
    word = next((word.lower() for word in reversed(words) if is_name(word.lower())), "item")
    name = singular(word)
    taken = source.variable if source else ""
    return name if name != taken else f"{name}_item"


def singular(word: str) -> str:
    """Returns a noun without the ending of the plural."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def several_name(word: str) -> str:
    """Returns the plural of a name."""
    return word[:-1] + "ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else word + "s"


def result_thing(statement: Call | UserTask, stems: frozenset[str], several: bool, plural: bool = False) -> Thing:
    """Returns the variable that a statement sets."""
    return Thing(statement.variable, stems, several, plural=several and plural)


_THEM = frozenset(["them", "these", "those"])
_BEING = frozenset("is are was has gets get becomes".split())
_EVERY = ("all", "every", "each", "these", "those")
_CLOSING = frozenset(["finally", "lastly", "afterwards", "afterward", "thereafter"])
_PRONOUNS = frozenset(["it", "its", "them", "their", "they", "this", "each", "these"])


@dataclass
class _Scope:
    """An open block. `kind` is root, for, while, if, or else."""

    kind: str
    statements: list[Statement] = field(default_factory=list)
    variable: str = ""
    expression: Expression | None = None
    sentence: int = -1
    branches: list[Branch] = field(default_factory=list)


@dataclass(frozen=True)
class Parts:
    """What the builder asks for. Each function returns None where the clause asks for nothing of the catalogue."""

    step: Callable[[Clause, Sequence[Thing]], tuple[Statement, Thing] | None]
    listing: Callable[[Clause], tuple[Call, Thing] | None]
    accounts: list[Account] = field(default_factory=list)


class FlowBuilder:
    """Builds one block from clauses. `things` are the variables that are known before the first clause."""

    def __init__(self, parts: Parts, things: Sequence[Thing] = ()) -> None:
        self.parts, self.things = parts, list(things)
        self._scopes = [_Scope("root")]
        self._compared: Thing | None = None

    def build(self, clauses: Sequence[Clause]) -> Block:
        """Returns the block of the clauses."""
        beside: tuple[_Scope, int] | None = None
        for place, clause in enumerate(clauses):
            known = len(self.parts.accounts)
            self._leave(clause)
            if clause.together and beside is None:
                beside = self._scopes[-1], len(self._scopes[-1].statements)
            if clause.kind == STEP:
                self._step(clause)
            elif clause.kind == LOOP:
                self._loop(clause)
            elif clause.kind == CONDITION:
                self._condition(clause, clauses[place + 1 :])
            elif clause.kind == WHILE:
                self._while(clause)
            elif clause.kind == ELSE:
                self._else(clause)
            elif clause.kind == START:
                self._tell(clause, START)
            if len(self.parts.accounts) == known:
                self._tell(clause, LOSS, question=f"what does {quoted(clause)} mean? Nothing in the flow says it")
            following = clauses[place + 1] if place + 1 < len(clauses) else None
            if beside is not None and (following is None or not following.together or following.opens):
                self._at_the_same_time(*beside)
                beside = None
        while len(self._scopes) > 1:
            self._close()
        return tuple(self._scopes[0].statements)

    def _at_the_same_time(self, scope: _Scope, first: int) -> None:
        """Puts the statements of a sentence beside each other; a single one beside the statement before it."""
        while self._scopes[-1] is not scope and scope in self._scopes:
            self._close()
        own = scope.statements
        first = first - 1 if len(own) - first == 1 and first else first
        if self._scopes[-1] is not scope or len(own) - first < 2:
            asked = "which steps are done at the same time? One step alone stands there"
            self.parts.accounts.append(Account("at the same time", LOSS, question=asked))
            return
        own[first:] = [Parallel(tuple((statement,) for statement in own[first:]))]
        self.parts.accounts.append(Account("at the same time", "parallel"))

    def _tell(
        self, clause: Clause, became: str, result: str = "", lost: tuple[str, ...] = (), question: str = ""
    ) -> None:
        """Notes what became of a clause."""
        if lost and not question:
            question = f"what does {' '.join(lost)!r} mean in {quoted(clause)}? The {became} does not say it"
        self.parts.accounts.append(Account(_shown(clause), became, result, lost, question))

    def _leave(self, clause: Clause) -> None:
        """Closes the blocks that a new sentence leaves: every if, and a loop of which it does not speak."""
        if _CLOSING & set(clause.adverbs):
            while len(self._scopes) > 1:
                self._close()
        if not clause.opens or clause.kind == ELSE:
            return
        while len(self._scopes) > 1 and self._scopes[-1].kind in ("if", "else"):
            self._close()
        while len(self._scopes) > 1 and not self._speaks_of(clause, self._scopes[-1]):
            self._close()

    def _speaks_of(self, clause: Clause, scope: _Scope) -> bool:
        if clause.adverbs and clause.adverbs[0] in _CLOSING:
            return False
        words = [word.lower() for word in clause.words]
        if _PRONOUNS & {word.removesuffix("'s") for word in words}:
            return True
        item = next((thing for thing in self.things if thing.variable == scope.variable), None)
        singular = [stem(word.removesuffix("'s")) for word in words if not word.endswith("s") or word.endswith("'s")]
        return bool(item and item.stems & set(singular)) or (clause.kind == CONDITION and scope.kind == "for")

    def _add(self, statement: Statement) -> None:
        self._scopes[-1].statements.append(statement)

    def _close(self) -> None:
        scope = self._scopes.pop()
        block = tuple(scope.statements)
        if scope.kind in ("for", "while") and block and scope.expression is not None:
            made = (
                For(scope.variable, scope.expression, block) if scope.kind == "for" else While(scope.expression, block)
            )
            self._add(made)
        elif scope.kind == "if" and block and scope.expression is not None:
            self._add(If((*scope.branches, Branch(scope.expression, block))))
        elif scope.kind == "else" and block and scope.branches:
            self._add(If(tuple(scope.branches), block))
        elif scope.kind == "else" and scope.branches:
            self._add(If(tuple(scope.branches)))
        if scope.kind == "for":
            self.things = [thing for thing in self.things if thing.loop != scope.variable]

    def _step(self, clause: Clause) -> None:
        text = " ".join(clause.words)
        if _NOT_DONE.match(text):
            said = len(clause.words) > _SHORT or bool(
                {"that", "which", "who", "whose"} & {w.lower() for w in clause.words}
            )
            self._tell(clause, NOTHING, question=f"does {quoted(clause)} ask for something else?" if said else "")
            return
        if not _asks(clause):
            self._tell(clause, NOTHING, question=f"does {quoted(clause)} ask for something? It is read as a remark")
            return
        if self._all_of(clause):
            return
        made = self.parts.step(clause, self.things)
        if made is not None:
            statement, thing = made
            if thing.several and operations_of_verb(clause.verb)[:1] == ("retrieve",):
                asked = self._restrictions(replace(clause, words=clause.words[1:]), clause.words[1:])
                thing = replace(thing, asked=asked[0] if asked else None)
            self._add(statement)
            self.things.append(thing)

    def _source(self, words: Sequence[str], several: bool = False) -> Thing | None:
        """The last known variable whose words have the head noun of these words; of several things where asked."""
        stems = [stem(word.removesuffix("'s")) for word in words if word.lower() not in EMPTY]
        for wanted in reversed(stems):
            for thing in reversed(self.things):
                if wanted in thing.stems and (thing.several or not several):
                    return thing
        return self._source(words) if several else None

    def _loop(self, clause: Clause) -> None:
        head = head_of(clause.words)
        source = self._source(head, several=True)
        postfixed = self._scopes[-1].statements.pop() if clause.postfix and self._scopes[-1].statements else None
        if source is None or not source.several:
            listed = self.parts.listing(clause) if head else None
            if listed is not None:
                call, source = listed
                self._add(call)
                self.things.append(source)
        if source is None and not head:
            source = next((thing for thing in reversed(self.things) if thing.several), None)
        variable = item_name(head or ([source.variable] if source else ["item"]), source)
        iterable = Path((source.variable,)) if source else Path((several_name(variable),))
        stems = (source.stems if source else frozenset()) | {stem(word) for word in head if word.lower() not in EMPTY}
        self._scopes.append(_Scope("for", variable=variable, expression=iterable, sentence=clause.sentence))
        self.things.append(Thing(variable, stems, loop=variable))
        conditions = self._restrictions(clause, head)
        if not conditions and source is not None and source.asked is not None:
            conditions = [source.asked]
            self._said(source.asked)
        every = [condition.expression(variable) for condition in conditions]
        asked = [write_condition(expression) for expression in every]
        named = (*head, *(word for condition in conditions for word in condition.subject), *stems)
        doubt = next(filter(None, (self._doubt(clause, expression) for expression in every)), "")
        self._tell(clause, LOOP, f"for {variable} in {iterable.parts[0]}", unsaid(clause.words, *asked, *named), doubt)
        if every:
            expression = every[0] if len(every) == 1 else And(tuple(every))
            self._scopes.append(_Scope("if", expression=expression, sentence=clause.sentence))
        if postfixed is not None:
            self._add(postfixed)
            if every:
                self._close()
            self._close()

    def _restrictions(self, clause: Clause, head: Sequence[str]) -> list[ConditionText]:
        """What the words of a loop, or of a step that retrieves, say of the things that are meant."""
        known = described(clause.words) if head else None
        conditions = [known] if known is not None else []
        if clause.marker == "all":  # what is changed or deleted must be said whole
            conditions += [
                ConditionText(pronoun=True, attribute=word)
                for word in adjectives_of(head)
                if known is None or word != known.value
            ]
        if restriction := filter_of(clause.words):
            read = read_condition(replace(clause, kind=CONDITION, words=restriction))
            conditions = [*conditions, read] if clause.marker == "all" else [read]
        return conditions

    def _said(self, asked: ConditionText) -> None:
        """Notes that a condition now says what a step that retrieves left open."""
        texts = [asked.attribute, str(asked.value), *asked.subject]
        for place, account in enumerate(self.parts.accounts):
            left = unsaid(account.lost, *texts)
            if account.became == STEP and account.lost and left != account.lost:
                self.parts.accounts[place] = replace(account, lost=left, question=account.question if left else "")

    def _all_of(self, clause: Clause) -> bool:
        """Reads "delete all tasks that are closed" as a loop over tasks that were retrieved before."""
        words = [word.lower() for word in clause.words]
        changes = operations_of_verb(clause.verb)[:1] in (("update",), ("delete",))
        if operations_of_verb(clause.verb)[:1] != ("retrieve",) and self._ones(clause, words):
            return True
        filtered = filter_of(clause.words[1:]) or adjectives_of(noun_phrase(clause).words)
        if changes and len(words) > 2 and words[1] not in _EVERY and asks_for_several(clause) and filtered:
            clause = replace(clause, words=(clause.words[0], "all", *clause.words[1:]))
            words = [word.lower() for word in clause.words]
        if not changes or len(words) < 3 or words[1] not in _EVERY:
            return False
        if self._scopes[-1].kind == "for":
            return False
        head = head_of(clause.words[2:])
        source = next((t for t in reversed(self.things) if t.several and head and stem(head[-1]) in t.stems), None)
        if source is None and not (head and filtered):
            return False
        said = adjectives_of(head)
        whole = [word for word in unfiltered(clause.words[2:]) if word not in said]
        whole = whole[1:] if whole[:1] == ["the"] else whole
        if source is None and not self._listed(replace(clause, words=tuple(whole))):
            return False
        made = self.parts.step(replace(clause, words=(clause.words[0], "the", *whole)), self.things)
        if made is None:
            return False
        self._add(made[0])
        self._loop(replace(clause, kind=LOOP, words=clause.words[2:], marker="all", postfix=True))
        return True

    def _listed(self, clause: Clause) -> bool:
        """Adds the call that retrieves what a clause speaks of; False where no activity does."""
        listed = self.parts.listing(clause)
        if listed is None:
            return False
        self._add(listed[0])
        self.things.append(listed[1])
        return True

    def _ones(self, clause: Clause, words: Sequence[str]) -> bool:
        """Reads "update the ones that are open" as a condition on each of the things that were last spoken of."""
        start = next((i for i, word in enumerate(words) if i and word in ("those", "ones")), 0)
        restriction = filter_of(("it", *clause.words[start + 1 :])) if start else ()
        adjective = start > 2 and words[start] == "ones" and words[start - 1] not in ("the", "all") and words[start - 2]
        if not restriction and adjective == "the":
            restriction = ("it", "is", clause.words[start - 1])
        source = next((t for t in reversed(self.things) if t.several or t.loop == t.variable != ""), None)
        if not restriction or source is None:
            return False
        condition = read_condition(replace(clause, kind=CONDITION, words=restriction))
        if condition.operator == "==" and condition.value is None:
            condition = ConditionText(pronoun=True, attribute=restriction[-1].lower())  # "the empty ones"
        kept = start - 2 if adjective == "the" else start - 1 if words[start - 1] in ("the", "all") else start
        made = self.parts.step(
            replace(clause, words=(*clause.words[:kept], "the", *source.variable.split("_"))), self.things
        )
        if made is None:
            return False
        item = source.variable
        if source.several:
            item = item_name([singular(source.variable)], source)
            self._scopes.append(_Scope("for", variable=item, expression=Path((source.variable,))))
            self.things.append(Thing(item, source.stems, loop=item))
        expression = condition.expression(item)
        self._tell_condition(replace(clause, words=restriction), condition, expression)
        self._add(If((Branch(expression, (made[0],)),)))
        if source.several:
            self._close()
        return True

    def subject(self, condition: ConditionText) -> Thing | None:
        """Returns the variable that a condition speaks of: the one it names, the item of the loop, or the last one."""
        named = self._source(condition.subject) if condition.subject else None
        if named is not None and named.several:
            item = next(
                (t for t in reversed(self.things) if t.loop == t.variable != "" and t.stems & named.stems), None
            )
            return item or named
        if named is not None:
            return named
        items = [thing for thing in self.things if thing.loop and thing.loop == thing.variable]
        if items and (condition.attribute or condition.pronoun):
            return items[-1]
        if not condition.subject and self._compared in self.things:
            return self._compared
        return next((thing for thing in reversed(self.things) if thing.stems), None)

    def expression(self, condition: ConditionText) -> Expression:
        """Returns the condition on the variable that it speaks of."""
        self._compared = thing = self.subject(condition)
        if thing is not None:
            return condition.expression(thing.variable)
        name = "_".join(word.lower() for word in condition.subject if word.isidentifier()) or "item"
        return condition.expression(name if is_name(name) else "item")

    def _condition(self, clause: Clause, following: Sequence[Clause]) -> None:
        condition = read_condition(clause)
        if condition.subject and self._source(condition.subject) is None and not clause.postfix:
            found = self._listed(replace(clause, words=(*condition.subject, *place_of(clause.words))))
            one = clause.words[0].lower() == "the" and singular(condition.subject[-1]) == condition.subject[-1]
            if found and one:
                self.things[-1] = replace(self.things[-1], plural=False)
        if clause.postfix and self._scopes[-1].statements:
            self._tell_condition(clause, condition, self._guard(condition))
            return
        left = self._attribute_before() if not condition.subject and condition.attribute == "status" else ""
        if left and "status" not in [word.lower() for word in clause.words]:
            condition = replace(condition, attribute=left)  # "if its priority is high …; if it is medium …"
        self._each(condition, clause)
        expression = self.expression(condition)
        self._tell_condition(clause, condition, expression)
        scope = self._scopes[-1]
        if scope.kind in ("if", "else") and (clause.alternative or (not clause.opens and self._excludes(expression))):
            scope = self._reopened()
        elif clause.alternative or self._excludes(expression):
            last = scope.statements[-1] if scope.statements else None
            if isinstance(last, If) and not last.orelse:
                scope.statements.pop()
                made = _Scope("if", expression=expression, sentence=clause.sentence, branches=list(last.branches))
                self._scopes.append(made)
                return
        if clause.alternative and scope.kind == "else":
            scope.kind, scope.expression = "if", expression
            return
        self._scopes.append(_Scope("if", expression=expression, sentence=clause.sentence))

    def _attribute_before(self) -> str:
        """The attribute that the condition right before compares with a text."""
        statements = self._scopes[-1].statements
        last = statements[-1] if statements else None
        before = last.branches[-1].condition if isinstance(last, If) else self._scopes[-1].expression
        compares = isinstance(before, Comparison) and before.operator == "==" and isinstance(before.left, Path)
        return before.left.parts[-1] if compares and len(before.left.parts) > 1 else ""  # type: ignore[union-attr]

    def _tell_condition(self, clause: Clause, condition: ConditionText, expression: Expression) -> None:
        text = write_condition(expression)
        listed = [thing.stems for thing in self.things[-1:]]
        said = (text, *condition.subject, *place_of(clause.words)) if listed else (text, *condition.subject)
        self._tell(clause, CONDITION, text, unsaid(clause.words, *said), self._doubt(clause, expression))

    def _doubt(self, clause: Clause, expression: Expression) -> str:
        """A question where a condition says no more than that the item of a loop is there."""
        bare = expression.operand if isinstance(expression, Not) else expression
        item = (
            isinstance(bare, Path)
            and any(thing.loop == bare.parts[0] for thing in self.things)
            and len(bare.parts) == 1
        )
        return f"what does {quoted(clause)} ask of each item?" if item else ""

    def _guard(self, condition: ConditionText) -> Expression:
        """Puts the condition behind a step around it; it does not speak of what the step makes."""
        inner = self._scopes[-1].statements.pop()
        made = [thing for thing in self.things if thing.variable == getattr(inner, "variable", "")]
        self.things = [thing for thing in self.things if thing not in made]
        opened = self._each(condition, None)
        expression = self.expression(condition)
        self._add(If((Branch(expression, (inner,)),)))
        if opened:
            self._close()
        self.things += made
        return expression

    def _each(self, condition: ConditionText, clause: Clause | None) -> bool:
        """Opens a loop where the condition compares an attribute of several things."""
        thing = self.subject(condition)
        if thing is None or not thing.plural or not condition.attribute:
            return False
        while len(self._scopes) > 1 and self._scopes[-1].kind in ("if", "else") and clause and clause.opens:
            self._close()
        item = item_name([singular(thing.variable)], thing)
        self._scopes.append(_Scope("for", variable=item, expression=Path((thing.variable,)), sentence=-1))
        self.things.append(Thing(item, thing.stems, loop=item))
        return True

    def _reopened(self) -> _Scope:
        """Closes the body of the innermost if and opens what comes otherwise."""
        scope = self._scopes.pop()
        branches = list(scope.branches)
        if scope.kind == "if" and scope.expression is not None and scope.statements:
            branches.append(Branch(scope.expression, tuple(scope.statements)))
        self._scopes.append(_Scope("else", branches=branches, sentence=scope.sentence))
        return self._scopes[-1]

    def _excludes(self, expression: Expression) -> bool:
        """Whether the condition compares what the last if compares with another constant, so that it is an elif."""
        statements = self._scopes[-1].statements
        last = statements[-1] if statements else None
        return isinstance(last, If) and not last.orelse and excludes(last.branches[-1].condition, expression)

    def _while(self, clause: Clause) -> None:
        condition = read_condition(replace(clause, kind=CONDITION))
        if condition.subject and self._source(condition.subject) is None and not clause.postfix:
            listed = self.parts.listing(replace(clause, words=condition.subject))
            if listed is not None:
                self._add(listed[0])
                self.things.append(replace(listed[1], plural=False))
        expression = self.expression(condition)
        expression = negated(expression) if clause.marker == "until" else expression
        text = write_condition(expression)
        self._tell(clause, WHILE, text, unsaid(clause.words, text, *condition.subject))
        scope = _Scope("while", expression=expression, sentence=clause.sentence)
        last = self._scopes[-1].statements.pop() if clause.postfix and self._scopes[-1].statements else None
        self._scopes.append(scope)
        if last is not None:
            self._add(last)
            self._close()

    def _else(self, clause: Clause) -> None:
        while len(self._scopes) > 1 and self._scopes[-1].kind not in ("if", "else"):
            if self._last_if() is not None:
                break
            self._close()
        if self._scopes[-1].kind == "if":
            self._reopened()
            self._tell(clause, ELSE)
            return
        last = self._last_if()
        if last is not None:
            self._tell(clause, ELSE)
            self._scopes[-1].statements.pop()
            self._scopes.append(_Scope("else", branches=list(last.branches), sentence=clause.sentence))

    def _last_if(self) -> If | None:
        statements = self._scopes[-1].statements
        last = statements[-1] if statements else None
        return last if isinstance(last, If) and not last.orelse else None


def _asks(clause: Clause) -> bool:
    """Whether a clause asks for something: it begins with a verb, or somebody in it does something to something."""
    lower = [word.lower() for word in clause.words]
    if is_base(clause.verb.lower()) or clause.shares_verb:
        return lower[0] not in ("i", "you", "we", "they", "he", "she", "it")
    acts = (i for i, word in enumerate(lower[:-1]) if i and may_be_third_person(word) and word not in _BEING)
    return any(lower[i + 1] in DETERMINERS for i in acts)


def _shown(clause: Clause) -> str:
    """The clause with its marker, as it is told to people."""
    return " ".join(filter(None, (clause.marker, clause.text)))


def quoted(clause: Clause) -> str:
    """Returns a clause in quotes, as a question names it."""
    return repr(_shown(clause)[:120])


def excludes(one: Expression, other: Expression) -> bool:
    """Returns whether two conditions compare the same attribute for equality with different constants."""
    return (
        isinstance(one, Comparison)
        and isinstance(other, Comparison)
        and one.operator == other.operator == "=="
        and one.left == other.left
        and one.right != other.right
    )
