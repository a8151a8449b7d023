"""The constraints of the search: what settings state, and what process and contract documents demand.

Stated constraints (contract.toml, intake.toml) override what is read. Sentences of process and contract documents bind
where they concern the work (`intakes.requirements.rules`) and can be resolved. The client input and the wanted output
set no constraint. A demand becomes a constraint only where it certainly concerns a task or limit of this Intention. A
person can state a missed rule in contract.toml, but a rule that is read wrongly would spoil every workflow.

The facts of an intake on which a rule may depend are amounts with currencies, measures, and the words of the client. A
condition that the facts do not decide stays undecided, and the rule that depends on it is not applied.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.rules import Rule, RuleDemand, Sentence, split_sentences, without_agent
from opus_pipelines.language.grammar.figures import NUMBER, Figure, figure_of, hours, money_in, number, with_tokens
from opus_pipelines.language.grammar.statements import Condition
from opus_pipelines.language.word_stems import same, stem, stem_set, stems, within
from opus_pipelines.lwm.interface import ProcessDemand
from opus_pipelines.lwm.precedence import Pair
from opus_pipelines.lwm.retrieval.task_names import TaskMatcher
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.workflow.constraints import Constraints, StepDeadline, Unit, folded

_MEASURE = re.compile(rf"(?P<n>{NUMBER})\s*-?(?P<u>[a-z°]+)")
_NEGATIVE = re.compile(r"\b(?:no|not|never|without|nobody|nothing|none|n't)\b|n't\b")
_SAID = {">": "above", ">=": "from", "<": "below", "<=": "up to"}
_COMPARE = {">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b}


@dataclass(frozen=True)
class IntakeStatements:
    """What an intake states itself.

    `request_text`: title and client input. `constraints`: those of contract.toml and intake.toml. `documents`: the
    name of each document by element id. `answers`: the activity that a person gave for a phrase.
    """

    request_text: str
    constraints: Constraints
    documents: Mapping[str, str]
    answers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, intake: Intake, inputs: Sequence[str] | None = None) -> "IntakeStatements":
        """Return the statements of an intake; `inputs` has the client input of one Intention, None: that of all."""
        if inputs is None:
            inputs = [e.text or "" for e in intake.elements if e.role == "input"]
        documents = {e.element_id: f"{e.role}/{e.name}" for e in intake.elements}
        return cls("\n".join([intake.title or "", *inputs]), intake.constraints, documents, intake.answers)


class IntakeFacts:
    """The facts in the title and the client input of one intake."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def money(self) -> tuple[Figure, ...]:
        """Return every amount of money in the text."""
        return money_in(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the stems of all words."""
        return stem_set(self.text)

    @cached_property
    def sentences(self) -> tuple[tuple[tuple[str, ...], bool], ...]:
        """Return the stems of each sentence, and whether the sentence has a negation."""
        return tuple((stems(text.casefold()), bool(_NEGATIVE.search(text.casefold()))) for text in self._texts)

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        """Return the sentences as they are written, in the same order."""
        return tuple(text for line in self.text.splitlines() for _, text in split_sentences(line))

    def unmet(self, conditions: Iterable[Condition]) -> tuple[str | None, bool]:
        """Return why a rule with these conditions is not applied, and whether the facts decide that.

        The reason is None where all conditions are met.
        """
        return next((unmet for c in conditions if (unmet := self._unmet(c))[0]), (None, False))

    def _unmet(self, condition: Condition) -> tuple[str | None, bool]:
        text = condition.text
        if text:
            met = self._mentions(text, condition.is_scope)
            if condition.negated and not condition.op:
                return (f"it holds unless {text!r}, which this intake states", True) if met else (None, False)
            if not met and not condition.is_scope:
                return f"it depends on {text!r}, which this intake does not state", False
            if not met:
                return f"it is about {text!r}, which this intake does not mention", True
        return self._unmet_figure(condition) if condition.op else (None, False)

    def _unmet_figure(self, condition: Condition) -> tuple[str | None, bool]:
        limit = condition.amount or 0.0
        bound = f"{'not ' if condition.negated else ''}{_SAID[condition.op]} {limit:,.2f} {condition.unit}"
        own, others = self._figures(condition.unit, condition.of)
        if condition.of and not own:
            return f"it holds for {condition.of} {bound}, and the client input states no such figure of them", False
        if not own:
            more = f" in {condition.unit}, only in {', '.join(others)}" if others else ""
            return f"it holds for amounts {bound}, and the client input states no amount{more}", False
        largest = max(own)
        if _COMPARE[condition.op](largest, limit) != condition.negated:
            return None, False
        return f"it holds for amounts {bound}; the largest of the client input is {largest:,.2f} {condition.unit}", True

    def _figures(self, unit: str, of: str) -> tuple[list[float], list[str]]:
        """Return the amounts in the unit and, for money, the other currencies; of the sentences that name `of`."""
        if unit.isupper():
            money = money_in(self._sentences_about(of)) if of else self.money
            own = [f.amount for f in money if f.unit == unit]
            return own, sorted({f.unit for f in money if f.unit != unit})
        text = with_tokens(self._sentences_about(of) if of else self.text).casefold()
        figures = [figure_of(token) for token in re.findall(r"⟦[^⟧]*⟧", text)]
        if unit == "percent" or any(f.unit == unit for f in figures):
            return [f.amount for f in figures if f.unit == unit], []
        counted = [(number(m["n"]), m["u"]) for m in _MEASURE.finditer(text)]
        return [n for n, noun in counted if n is not None and stem(noun) == stem(unit)], []

    def _sentences_about(self, noun: str) -> str:
        """Return the sentences that have the last word of a noun phrase, one a line."""
        head = stem(noun.split()[-1])
        return "\n".join(text for text, (words, _) in zip(self._texts, self.sentences, strict=True) if head in words)

    def _mentions(self, text: str, is_scope: bool) -> bool:
        """Return whether the intake states the text.

        The name of a kind of case may be anywhere in it; a clause must be in one sentence, and both or neither
        negated.
        """
        wanted = stems(text)
        if not wanted:
            return False
        if is_scope:
            return within(wanted, tuple(self.words))
        denies = bool(_NEGATIVE.search(text))
        return any(within(wanted, words) and denied == denies for words, denied in self.sentences)


IN_FORCE = "in force"
NO_ACTIVITY = "none"  # the answer that a phrase means no activity
STATED = "contract.toml or intake.toml"
_LEAST_SHARE = 0.05  # of the near successes that must do what a contract's document demands of all its intakes
CHOICES = ("one_of", "exactly_one_of")
LIMITS = {"max_duration_hours": min, "max_lead_time_hours": min, "max_cost_usd": min, "min_success": max}


@dataclass(frozen=True)
class ResolvedRule:
    """One demand of a rule, or one stated constraint: its source, its effect and its tasks (ids, in order).

    `is_about_other_cases`: the intake's facts, or the answer of a person, say that the rule concerns other cases.
    `unclear_phrase`: a phrase for which no activity can be identified, with the titles of the `nearest` ones; it is
    a question to a person, who answers it in contract.toml. `why`: why its condition holds for the intake. `differs`:
    how most similar cases did it otherwise.
    """

    kind: str
    value: str
    effect: str
    place: str
    sentence: str | None = None
    element_id: str | None = None
    tasks: tuple[str, ...] = ()
    is_about_other_cases: bool = False
    unclear_phrase: str | None = None
    nearest: tuple[str, ...] = ()
    figure: Figure | None = None
    why: str | None = None
    differs: str | None = None

    @property
    def status(self) -> str:
        """Return one of: in force, other cases, not applied."""
        return "in force" if self.is_in_force else "other cases" if self.is_about_other_cases else "not applied"

    @property
    def is_in_force(self) -> bool:
        """Return whether it is a constraint of the search."""
        return self.effect == IN_FORCE


@dataclass(frozen=True)
class ProcessHistory:
    """What history knows about the processes of an Intention.

    `demands`: the processes, that of the similar cases first. `precedence`: their stable precedence. `is_timed`:
    whether history has times of a task.
    """

    demands: Sequence[ProcessDemand] = ()
    precedence: frozenset[Pair] = frozenset()
    is_timed: Callable[[str], bool] = lambda task: True


@dataclass(frozen=True)
class ResolutionContext:
    """What a demand is resolved against; `wfg` is the Workflow Graph of this Intention."""

    intake: IntakeStatements
    matcher: TaskMatcher
    wfg: WFG
    history: ProcessHistory


class ConstraintResolution:
    """Resolves the demands of one Intention; constraints in force decide on those that follow."""

    def __init__(self, context: ResolutionContext) -> None:
        self.context = context
        self.facts = IntakeFacts(context.intake.request_text)
        self.answers = {stems(phrase.casefold()): name for phrase, name in context.intake.answers.items()}
        names = context.matcher.names
        self.stated_pairs = {
            (a, b) for x, y in context.intake.constraints.before for a in names.tasks(x) for b in names.tasks(y)
        }
        self.pairs: set[Pair] = set(self.stated_pairs)
        self.must_contain = {t for name in context.intake.constraints.must_contain for t in names.tasks(name)}
        self.must_not_contain = {t for name in context.intake.constraints.must_not_contain for t in names.tasks(name)}

    def resolve(self, rules: Sequence[Rule]) -> list[ResolvedRule]:
        """Return every demand of the rules in their order; the strong ones are resolved first."""
        listed = [(rule, self._whole_or_step(demand)) for rule in rules for demand in rule.demands]

        def rank(place: int) -> tuple[bool, bool, bool]:
            demand = listed[place][1]
            return demand.kind in CHOICES, not demand.strong, demand.kind == "must_not_contain"

        resolved = {n: self._resolve_demand(*listed[n]) for n in sorted(range(len(listed)), key=rank)}
        return list(dict.fromkeys(resolved[n] for n in range(len(listed))))

    def demanded_by_deadlines(self, rules: Sequence[ResolvedRule]) -> list[str]:
        """Return the titles of the steps that deadlines in force demand."""
        steps = [rule.tasks[0] for rule in rules if rule.is_in_force and rule.figure and rule.tasks]
        return [self._title(task) for task in steps if task in self.must_contain]

    def task_demanded(self, demand: RuleDemand, heading: str | None) -> str | None:
        """Return the task that a demand asks for, whether similar cases did it or not.

        Returns None where the task is not certain, or the demand does not concern this intake.
        """
        if demand.kind != "must_contain" or demand.no_effect_reason or self._not_applicable(demand)[0]:
            return None
        task = self._task(demand.clauses[0], demand.verbs[0])
        is_unclear = demand.depends_on and self._task(demand.depends_on) is None
        return None if task is None or is_unclear or self._other_step_reason(heading, (task,)) else task

    def _whole_or_step(self, demand: RuleDemand) -> RuleDemand:
        """Return a limit of the lead time as the deadline of a step, where its sentence surely names that step.

        "Tickets are resolved within 10 days" is about the whole work, unless history has a step "Resolve Ticket".
        """
        if demand.kind != "max_lead_time_hours" or not demand.clauses:
            return demand
        if all(self._task(clause) is not None for clause in demand.clauses):
            return replace(demand, kind="deadlines", value=None)
        return replace(demand, clauses=(), verbs=(), figure=None)

    def _resolve_demand(self, rule: Rule, demand: RuleDemand) -> ResolvedRule:
        tasks, effect = self._resolved(demand, rule.sentence)
        titles = list(map(self._title, tasks))
        value = demand.shown or _in_words(demand, titles or demand.clauses)
        place = self.context.intake.documents.get(rule.sentence.element_id, rule.sentence.role)
        question = (
            None
            if demand.no_effect_reason or effect == IN_FORCE or self._not_applicable(demand)[0]
            else self._question(demand)
        )
        nearest = self.context.matcher.nearest(question) if question else ()
        return ResolvedRule(
            demand.kind,
            value,
            effect,
            f"{place}, {rule.sentence.place}",
            rule.sentence.text,
            rule.sentence.element_id,
            tasks,
            self._not_applicable(demand)[1] or self._is_dismissed(demand),
            question,
            nearest,
            demand.figure,
        )

    def _is_dismissed(self, demand: RuleDemand) -> bool:
        """Return whether a person answered that no activity is meant."""
        answers = (self.answers.get(stems(clause)) for clause in (*demand.clauses, demand.depends_on))
        return any(answer is not None and answer.casefold() == NO_ACTIVITY for answer in answers)

    def _task(self, clause: str, verb: str = "") -> str | None:
        """Return the task that a clause means: by the answer of a person, else by its words."""
        answer = self.answers.get(stems(clause))
        if answer is None:
            return self._matched(clause, verb)
        tasks = self.context.matcher.names.tasks(answer) & set(self.context.matcher.tasks)
        return min(tasks) if tasks else None

    def _matched(self, clause: str, verb: str) -> str | None:
        """Return the task that the words mean.

        The agent counts only where the task's name has it: "approved by the supervisor".
        """
        matcher, bare = self.context.matcher, without_agent(clause)
        if bare == clause or not bare:
            return matcher.match(clause, verb)
        task = matcher.match(clause, verb)
        agent = [w for w in stems(clause) if w not in stems(bare)]
        if task is not None and any(same(n, w) for name in matcher.stemmed_names(task) for n in name for w in agent):
            return task
        return matcher.match(bare, verb)

    def _question(self, demand: RuleDemand) -> str | None:
        """Return the first phrase for which no activity can be identified, None where there is none."""
        phrases = [
            *zip(demand.clauses, demand.verbs, strict=False),
            *([(demand.depends_on, "")] if demand.depends_on else []),
        ]
        unsure = (c for c, v in phrases if stems(c) not in self.answers and self._task(c, v) is None)
        return next((c for c in unsure if self.context.matcher.catalogue_task(c) is None), None)

    def _other_step_reason(self, heading: str | None, tasks: tuple[str, ...]) -> str | None:
        """Return why a rule concerns one step only: it stands under the name of that step."""
        step = self.context.matcher.names.tasks(heading) if heading and tasks else frozenset()
        return (
            f"it stands under {heading!r}: it is about that step, not about the whole work"
            if step and not step & set(tasks)
            else None
        )

    def _resolved(self, demand: RuleDemand, sentence: Sentence) -> tuple[tuple[str, ...], str]:
        """Return the tasks that a demand concerns, and its effect."""
        if reason := demand.no_effect_reason or self._not_applicable(demand)[0]:
            return (), reason
        if demand.kind in LIMITS:
            stated = getattr(self.context.intake.constraints, demand.kind)
            return (), IN_FORCE if stated is None else f"{STATED} states {stated:g}"
        tasks = tuple(filter(None, (self._task(c, v) for c, v in zip(demand.clauses, demand.verbs, strict=True))))
        if len(tasks) < len(demand.clauses):
            return (), self._unknown_reason(demand)
        resolve = {
            "before": self._before,
            "must_contain": self._must_contain,
            "must_not_contain": self._must_not_contain,
            "one_of": self._choice,
            "exactly_one_of": self._choice,
            "deadlines": self._deadline,
        }[demand.kind]
        return tasks, self._other_step_reason(sentence.heading, tasks) or resolve(
            demand, tasks, sentence.role
        ) or IN_FORCE

    def _not_applicable(self, demand: RuleDemand) -> tuple[str | None, bool]:
        """Return why the demand is not applied, and whether it concerns other cases.

        The reason is None where the conditions of the demand are met.
        """
        if (scope := stems(demand.scope)) and not within(scope, tuple(self.facts.words)):
            return f"it is about {demand.scope!r}, which this intake does not mention", True
        return self.facts.unmet(demand.conditions)

    def _unknown_reason(self, demand: RuleDemand) -> str:
        """Return why a demand whose task is not known is not applied."""
        matcher = self.context.matcher
        unknown = [c for c, v in zip(demand.clauses, demand.verbs, strict=True) if self._task(c, v) is None]
        answer = self.answers.get(stems(unknown[0]))
        if answer is not None and answer.casefold() == NO_ACTIVITY:
            return f"a person answered that no activity is meant by {unknown[0]!r}"
        if answer is not None:
            reason = (
                "no way in which history did this work has it"
                if matcher.names.tasks(answer)
                else "no activity has that name"
            )
            return f"a person answered that {unknown[0]!r} means {answer!r}, and {reason}"
        known = [matcher.graph.tasks[t].title for c in unknown if (t := matcher.catalogue_task(c))]
        if known:
            return f"no way in which history did this work has {known[0]!r}"
        return f"no step of the catalogue is surely meant by {unknown[0]!r}"

    def _must_contain(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        (task,) = tasks
        if demand.depends_on:
            then = self._task(demand.depends_on)
            if then is None:
                return f"it hangs on {demand.depends_on!r}, of which nobody can tell which step it is"
            if ((then, task) if demand.after else (task, then)) not in self.pairs:
                return "the order that it goes with has no effect"
            if demand.after and not self._is_required(then):
                return f"it holds where {self._title(then)!r} is done, and not every way does that"
        if task in self.must_not_contain:
            return f"{STATED} or another rule demands the contrary"
        if not self._is_supported(task, role):
            return "the near cases that succeeded hardly ever did it: it is taken to be about other work"
        self.must_contain.add(task)
        return None

    def _is_required(self, task: str) -> bool:
        """Return whether every workflow for this intake does the task."""
        return task in self.must_contain or any(
            group == {task} for process in self.context.history.demands for group in process.critical
        )

    def _choice(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        """Return why a choice is not applied, None where it is.

        It is applied where history did one of its options in such a process, not all options are forbidden, and
        not two options of exactly one are required.
        """
        if len(set(tasks)) < len(tasks):
            return "two of its options name the same step"
        if all(task in self.must_not_contain for task in tasks):
            return f"{STATED} or another rule demands the contrary"
        required = [self._title(task) for task in tasks if self._is_required(task)]
        if demand.kind == "exactly_one_of" and len(required) > 1:
            both = " and ".join(map(repr, required))
            return f"history or another rule needs both {both}; state exactly_one_of if only one may be"
        supported = [task for task in tasks if any(process.supports(task) for process in self.context.history.demands)]
        if self._has_cases and (
            not supported or (role == "contract" and all(self._share(task) < _LEAST_SHARE for task in tasks))
        ):
            return "the near cases that succeeded hardly ever did any of them: it is taken to be about other work"
        return None

    def _deadline(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        """Return why a deadline is not applied, None where history has times of the step.

        A deadline demands its step: a bound is never met by absence. Where no such case did the step, or another rule
        forbids it, the deadline only constrains the workflows that do it.
        """
        if len(set(tasks)) < len(tasks):
            return "the step and what its time is counted from are the same step"
        if not self.context.history.is_timed(tasks[0]):
            return f"history tells no waiting and no working time of {self._title(tasks[0])!r}"
        if tasks[0] not in self.must_not_contain and self._is_supported(tasks[0], role):
            self.must_contain.add(tasks[0])
        return None

    def _is_supported(self, task: str, role: str) -> bool:
        """Return whether similar cases that did not fail did the task, where there are such cases."""
        if not self._has_cases:
            return True
        is_done = any(process.supports(task) for process in self.context.history.demands)
        return is_done and (role != "contract" or self._share(task) >= _LEAST_SHARE)

    def _must_not_contain(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        (task,) = tasks
        if task in self.must_contain:
            return f"{STATED} or another rule demands the contrary"
        if any(
            group <= self.must_not_contain | {task}
            for process in self.context.history.demands
            for group in process.critical
        ):
            return "history failed or hardly ever succeeded without it; state it as must_not_contain if it is meant"
        self.must_not_contain.add(task)
        return None

    def _before(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        first, then = tasks
        if first == then:
            return "both of its clauses name the same step"
        if _reaches(self.pairs, then, first):
            return f"{STATED} or another rule demands the contrary"
        if not demand.strong and (then, first) in self.context.history.precedence:
            return "history does it the other way round, and the sentence does not say must"
        if not _reaches(self.context.wfg.edges, first, then):
            return "no way in which history did this work goes in this order"
        self.pairs.add((first, then))
        return None

    @property
    def _has_cases(self) -> bool:
        """Return whether similar cases say what belongs to the work; without any, the documents alone do."""
        return any(process.cases for process in self.context.history.demands)

    def _title(self, task: str) -> str:
        return self.context.matcher.graph.tasks[task].title

    def _share(self, task: str) -> float:
        successes = [c for c in self.context.history.demands[0].cases if c.success is not False]
        total = sum(c.weight for c in successes)
        return sum(c.weight for c in successes if task in c.tasks) / total if total else 0.0


def _in_words(demand: RuleDemand, names: Sequence[str]) -> str:
    if demand.kind == "deadlines" and demand.figure is not None:
        return deadline_of(demand.figure, *names).text
    if demand.value is not None:
        return f"{demand.value:g}"
    return (" or " if demand.kind in CHOICES else " before ").join(names)


def deadline_of(figure: Figure, step: str, after: str | None = None) -> StepDeadline:
    """Return the deadline of a step, in the unit of its sentence where deadlines have that unit, else in hours."""
    units: dict[tuple[str, bool], Unit] = {
        ("hour", True): "working_hours",
        ("day", True): "working_days",
        ("day", False): "days",
    }
    unit = units.get((figure.unit, figure.calendar == "working"))
    within = hours(figure) if unit is None else figure.amount
    return StepDeadline(step=step, within=within, unit=unit or "hours", after=after)


def _reaches(pairs: "set[Pair] | Mapping[Pair, object]", start: str, end: str) -> bool:
    """Return whether a walk along the pairs leads from start to end."""
    after: dict[str, list[str]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
    seen, unvisited = {start}, [start]
    while unvisited:
        for node in after.get(unvisited.pop(), ()):
            if node == end:
                return True
            if node not in seen:
                seen.add(node)
                unvisited.append(node)
    return False


@dataclass(frozen=True)
class RuleConstraints:
    """The constraints in force, and every stated or read rule with its effect."""

    constraints: Constraints
    rules: tuple[ResolvedRule, ...] = ()

    def precedence(self, stable: frozenset[Pair]) -> frozenset[Pair]:
        """Return the demanded precedence, and the stable precedence that does not contradict it."""
        demanded = {
            (d.tasks[0], d.tasks[1]) for d in self.rules if d.is_in_force and d.kind == "before" and len(d.tasks) == 2
        }
        return frozenset({(a, b) for a, b in stable if (b, a) not in demanded} | demanded)

    @property
    def not_applied(self) -> int:
        """Return the number of sentences and stated constraints that may concern this intake and have no effect."""
        in_force = {(d.sentence or d.value, d.place) for d in self.rules if d.is_in_force}
        left = {(d.sentence or d.value, d.place) for d in self.rules if d.status == "not applied"}
        return len(left - in_force)

    def with_source(self, violation: str) -> str:
        """Return a violation with the place of the sentence that it violates, where one was read."""
        kind, _, rest = violation.partition(": ")
        for rule in self.rules:
            if rule.is_in_force and rule.sentence and rule.kind == kind and (kind in LIMITS or _names(rule, rest)):
                return f"{violation} ({rule.place})"
        return violation


def rule_constraints(rules: Sequence[Rule], context: ResolutionContext) -> RuleConstraints:
    """Resolve every demand of the rules, and merge the result with the stated constraints."""
    resolution = ConstraintResolution(context)
    read = resolution.resolve(rules)
    constraints = _merged(context, read, resolution.demanded_by_deadlines(read))
    return RuleConstraints(constraints, (*_stated(context), *read))


def _names(rule: ResolvedRule, text: str) -> bool:
    if rule.kind == "deadlines":
        return text.startswith(f"{rule.value}:")
    return all(repr(name) in text for name in rule.value.split(" or " if rule.kind in CHOICES else " before "))


def _merged(context: ResolutionContext, read: Sequence[ResolvedRule], demanded: Sequence[str]) -> Constraints:
    """Return the stated constraints and the read ones in force; of several limits, the tightest.

    `demanded`: the steps that deadlines demand.
    """
    stated = context.intake.constraints
    new: dict[str, object] = {}

    def title(task: str) -> str:
        return context.matcher.graph.tasks[task].title

    for kind, tightest in LIMITS.items():
        values = [float(d.value) for d in read if d.is_in_force and d.kind == kind]
        if values:
            new[kind] = tightest(values)
    for kind in ("must_contain", "must_not_contain"):
        names = [title(d.tasks[0]) for d in read if d.is_in_force and d.kind == kind]
        names += demanded if kind == "must_contain" else ()
        new[kind] = tuple(dict.fromkeys((*getattr(stated, kind), *names)))
    orders = [(title(d.tasks[0]), title(d.tasks[1])) for d in read if d.is_in_force and d.kind == "before"]
    new["before"] = tuple(dict.fromkeys((*stated.before, *orders)))
    for kind in CHOICES:
        groups = [tuple(map(title, d.tasks)) for d in read if d.is_in_force and d.kind == kind]
        new[kind] = tuple(dict.fromkeys((*getattr(stated, kind), *groups)))
    deadlines = [deadline_of(d.figure, *map(title, d.tasks)) for d in read if d.is_in_force and d.figure]
    new["deadlines"] = tuple(dict.fromkeys((*stated.deadlines, *deadlines)))
    return stated.model_copy(update={k: v for k, v in new.items() if v != getattr(stated, k)})


def _stated(context: ResolutionContext) -> list[ResolvedRule]:
    """Return the constraints of contract.toml and intake.toml as resolved rules.

    One that names a task which nobody knows holds for every workflow, because no workflow has that task; it is shown
    as not applied, for the task may be known by another name.
    """
    stated, names, tasks_by_id = context.intake.constraints, context.matcher.names, context.matcher.graph.tasks
    own = {folded(tasks_by_id[node.task_id].title) for node in context.wfg.nodes.values() if node.task_id}

    def effect(*tasks: str | None) -> str:
        unknown = [t for t in tasks if t and not names.tasks(t) and folded(t) not in own]
        return f"no task of history is called {unknown[0]!r}" if unknown else IN_FORCE

    rules = [
        ResolvedRule(k, f"{getattr(stated, k):g}", IN_FORCE, STATED) for k in LIMITS if getattr(stated, k) is not None
    ]
    rules += [
        ResolvedRule(k, name, effect(name), STATED)
        for k in ("must_contain", "must_not_contain")
        for name in getattr(stated, k)
    ]
    rules += [
        ResolvedRule(kind, " or ".join(group), IN_FORCE, STATED) for kind in CHOICES for group in getattr(stated, kind)
    ]
    rules += [
        ResolvedRule("deadlines", deadline.text, effect(deadline.step, deadline.after), STATED)
        for deadline in stated.deadlines
    ]
    for a, b in stated.before:
        ids = [sorted(names.tasks(n) & context.wfg.nodes.keys()) for n in (a, b)]
        tasks = (ids[0][0], ids[1][0]) if all(len(i) == 1 for i in ids) else ()
        rules.append(ResolvedRule("before", f"{a} before {b}", effect(a, b), STATED, tasks=tasks))
    return rules
