"""Whether a demand that was read takes effect, and if not, why.

It does only where it is surely about a task or limit of this Intention's own ways: a rule that is missed can be stated
in contract.toml, a rule that is wrongly read would spoil every workflow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from opus_pipelines.core.word_stems import same, stems, within
from opus_pipelines.lwm.interface import ProcessDemand
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.requirements.grammar.figures import Figure, hours
from opus_pipelines.requirements.rules import Rule, RuleDemand, without_agent
from opus_pipelines.requirements.sentences import Sentence
from opus_pipelines.retrieval.intake_facts import IntakeFacts
from opus_pipelines.retrieval.task_matcher import TaskMatcher
from opus_pipelines.workflow.constraints import Constraints, StepDeadline, Unit

IN_FORCE = "in force"
NO_ACTIVITY = "none"  # the answer that a phrase means no activity
STATED = "contract.toml or intake.toml"
LEAST_SHARE = 0.05  # of the near successes that must do what a contract's document demands of all its intakes
CHOICES = ("one_of", "exactly_one_of")
LIMITS = {"max_duration_hours": min, "max_lead_time_hours": min, "max_cost_usd": min, "min_success": max}

Pair = tuple[str, str]


@dataclass(frozen=True)
class ResolvedRule:
    """One constraint or would-be constraint: where it comes from and whether it holds. `tasks`: the ids it is about,
    in order.

    `is_elsewhere`: the intake's facts, or a person's answer, say that the rule is about others. `asks`: the phrase of
    which nobody can tell which activity it means, with the titles of the `nearest` activities: a question to a person,
    who answers it in contract.toml.
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

    @property
    def status(self) -> str:
        """in force, other cases, or not applied."""
        return "in force" if self.is_in_force else "other cases" if self.is_about_other_cases else "not applied"

    @property
    def is_in_force(self) -> bool:
        """It is a constraint of the search."""
        return self.effect == IN_FORCE


@dataclass(frozen=True)
class ResolutionContext:
    """What a demand is held against: the client's own words, the ways of this Intention, its kinds of work (the near
    cases' first), what is stated, which activity a person said that a phrase means, and whether history tells
    anything of a task's time.
    """

    request_text: str
    matcher: TaskMatcher
    wfg: WFG
    demands: Sequence[ProcessDemand]
    precedence: frozenset[Pair]
    stated: Constraints
    elements: Mapping[str, str]
    answers: Mapping[str, str] = field(default_factory=dict)
    is_timed: Callable[[str], bool] = lambda task: True


class ConstraintResolution:
    """One Intention's demands being settled: what holds so far decides about what follows."""

    def __init__(self, ground: ResolutionContext) -> None:
        self.context = ground
        self.facts = IntakeFacts(ground.request_text)
        self.answers = {stems(phrase.casefold()): name for phrase, name in ground.answers.items()}
        names = ground.matcher.names
        self.stated_pairs = {(a, b) for x, y in ground.stated.before for a in names.tasks(x) for b in names.tasks(y)}
        self.pairs: set[Pair] = set(self.stated_pairs)
        self.contains = {t for name in ground.stated.must_contain for t in names.tasks(name)}
        self.lacks = {t for name in ground.stated.must_not_contain for t in names.tasks(name)}

    def resolve(self, rules: Sequence[Rule]) -> list[ResolvedRule]:
        """Every demand of the rules in their order; the strong ones are settled first."""
        listed = [(rule, demand) for rule in rules for demand in rule.demands]
        last = lambda demand: (demand.kind in CHOICES, not demand.strong, demand.kind == "must_not_contain")
        first = sorted(range(len(listed)), key=lambda n: (*last(listed[n][1]), n))
        made = {n: self._demanded(*listed[n]) for n in first}
        return list(dict.fromkeys(made[n] for n in range(len(listed))))

    def task_demanded(self, demand: RuleDemand, heading: str | None) -> str | None:
        """The task that it demands to be done, whatever near cases did; None where that is unsure, or it is not about
        this intake.
        """
        if demand.kind != "must_contain" or demand.no_effect_reason or self._elsewhere(demand)[0]:
            return None
        task = self._task(demand.clauses[0], demand.verbs[0])
        hangs = demand.depends_on and self._task(demand.depends_on) is None
        return None if task is None or hangs or self._under(heading, (task,)) else task

    def _demanded(self, rule: Rule, demand: RuleDemand) -> ResolvedRule:
        tasks, effect = self._settled(demand, rule.sentence)
        titles = [self.context.matcher.graph.tasks[t].title for t in tasks]
        said = demand.shown or _in_words(demand, titles or demand.clauses)
        where = self.context.elements.get(rule.sentence.element_id, rule.sentence.role)
        asks = (
            None
            if demand.no_effect_reason or effect == IN_FORCE or self._elsewhere(demand)[0]
            else self._question(demand)
        )
        nearest = self.context.matcher.nearest(asks) if asks else ()
        return ResolvedRule(
            demand.kind,
            said,
            effect,
            f"{where}, {rule.sentence.place}",
            rule.sentence.text,
            rule.sentence.element_id,
            tasks,
            self._elsewhere(demand)[1] or self._is_dismissed(demand),
            asks,
            nearest,
            demand.figure,
        )

    def _is_dismissed(self, demand: RuleDemand) -> bool:
        """A person answered that no activity is meant."""
        answers = (self.answers.get(stems(clause)) for clause in (*demand.clauses, demand.depends_on))
        return any(answer is not None and answer.casefold() == NO_ACTIVITY for answer in answers)

    def _task(self, clause: str, verb: str = "") -> str | None:
        """The task that a clause means: by the answer of a person, else as far as its words surely tell."""
        answer = self.answers.get(stems(clause))
        if answer is None:
            return self._meant_by(clause, verb)
        there = self.context.matcher.names.tasks(answer) & set(self.context.matcher.tasks)
        return min(there) if there else None

    def _meant_by(self, clause: str, verb: str) -> str | None:
        """The task that the words mean. Who does it counts where the task is called by that: "approved by the
        supervisor".
        """
        meaning, bare = self.context.matcher, without_agent(clause)
        if bare == clause or not bare:
            return meaning.match(clause, verb)
        found = meaning.match(clause, verb)
        agent = [w for w in stems(clause) if w not in stems(bare)]
        if found is not None and any(same(n, w) for name in meaning.stemmed_names(found) for n in name for w in agent):
            return found
        return meaning.match(bare, verb)

    def _question(self, demand: RuleDemand) -> str | None:
        """The first phrase of which nobody can tell which activity it means; None where all are told or answered."""
        phrases = [
            *zip(demand.clauses, demand.verbs, strict=False),
            *([(demand.depends_on, "")] if demand.depends_on else []),
        ]
        unsure = (c for c, v in phrases if stems(c) not in self.answers and self._task(c, v) is None)
        return next((c for c in unsure if self.context.matcher.catalogue_task(c) is None), None)

    def _under(self, heading: str | None, tasks: tuple[str, ...]) -> str | None:
        """Why a rule is about one step only: it stands under that step's name."""
        step = self.context.matcher.names.tasks(heading) if heading and tasks else frozenset()
        return (
            f"it stands under {heading!r}: it is about that step, not about the whole work"
            if step and not step & set(tasks)
            else None
        )

    def _settled(self, demand: RuleDemand, sentence: Sentence) -> tuple[tuple[str, ...], str]:
        """The tasks that a demand is about, and its effect."""
        if reason := demand.no_effect_reason or self._elsewhere(demand)[0]:
            return (), reason
        if demand.kind in LIMITS:
            stated = getattr(self.context.stated, demand.kind)
            return (), IN_FORCE if stated is None else f"{STATED} states {stated:g}"
        tasks = tuple(filter(None, (self._task(c, v) for c, v in zip(demand.clauses, demand.verbs, strict=True))))
        if len(tasks) < len(demand.clauses):
            return (), self._unknown(demand)
        settle = {
            "before": self._order,
            "must_contain": self._contain,
            "must_not_contain": self._lack,
            "one_of": self._choose,
            "exactly_one_of": self._choose,
            "deadlines": self._due,
        }[demand.kind]
        return tasks, self._under(sentence.heading, tasks) or settle(demand, tasks, sentence.role) or IN_FORCE

    def _elsewhere(self, demand: RuleDemand) -> tuple[str | None, bool]:
        """Why the demand is not applied, None where it is; and whether the intake's facts say that it is about other
        cases.
        """
        if (scope := stems(demand.scope)) and not within(scope, tuple(self.facts.words)):
            return f"it is about {demand.scope!r}, which this intake does not mention", True
        return self.facts.unmet(demand.conditions)

    def _unknown(self, demand: RuleDemand) -> str:
        meaning = self.context.matcher
        unknown = [c for c, v in zip(demand.clauses, demand.verbs, strict=True) if self._task(c, v) is None]
        answer = self.answers.get(stems(unknown[0]))
        if answer is not None and answer.casefold() == NO_ACTIVITY:
            return f"a person answered that no activity is meant by {unknown[0]!r}"
        if answer is not None:
            there = (
                "no way in which history did this work has it"
                if meaning.names.tasks(answer)
                else "no activity has that name"
            )
            return f"a person answered that {unknown[0]!r} means {answer!r}, and {there}"
        known = [meaning.graph.tasks[t].title for c in unknown if (t := meaning.catalogue_task(c))]
        if known:
            return f"no way in which history did this work has {known[0]!r}"
        return f"no step of the catalogue is surely meant by {unknown[0]!r}"

    def _contain(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        (task,) = tasks
        if demand.depends_on:
            then = self._task(demand.depends_on)
            if then is None:
                return f"it hangs on {demand.depends_on!r}, of which nobody can tell which step it is"
            if ((then, task) if demand.after else (task, then)) not in self.pairs:
                return "the order that it goes with has no effect"
            if demand.after and not self._is_sure(then):
                return f"it holds where {self.context.matcher.graph.tasks[then].title!r} is done, and not every way does that"
        if task in self.lacks:
            return f"{STATED} or another rule demands the contrary"
        if not any(work.supports(task) for work in self.context.demands) or (
            role == "contract" and self._share(task) < LEAST_SHARE
        ):
            return "the near cases that succeeded hardly ever did it: it is taken to be about other work"
        self.contains.add(task)
        return None

    def _is_sure(self, task: str) -> bool:
        """Every workflow for this intake does it."""
        return task in self.contains or any(group == {task} for work in self.context.demands for group in work.critical)

    def _choose(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        """A choice holds where history did one of its options in such work, and nothing forbids all of them or asks
        for two of one.
        """
        if len(set(tasks)) < len(tasks):
            return "two of its options name the same step"
        if all(task in self.lacks for task in tasks):
            return f"{STATED} or another rule demands the contrary"
        title = lambda task: self.context.matcher.graph.tasks[task].title
        sure = [title(task) for task in tasks if self._is_sure(task)]
        if demand.kind == "exactly_one_of" and len(sure) > 1:
            return f"history or another rule needs both {' and '.join(map(repr, sure))}; state exactly_one_of if only one may be"
        goes = [task for task in tasks if any(work.supports(task) for work in self.context.demands)]
        if not goes or (role == "contract" and all(self._share(task) < LEAST_SHARE for task in tasks)):
            return "the near cases that succeeded hardly ever did any of them: it is taken to be about other work"
        return None

    def _due(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        """A deadline holds where history tells something of the step's time. It asks for no step: it holds where the
        step is done.
        """
        if len(set(tasks)) < len(tasks):
            return "the step and what its time is counted from are the same step"
        title = self.context.matcher.graph.tasks[tasks[0]].title
        return None if self.context.is_timed(tasks[0]) else f"history tells no waiting and no working time of {title!r}"

    def _lack(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        (task,) = tasks
        if task in self.contains:
            return f"{STATED} or another rule demands the contrary"
        if any(group <= self.lacks | {task} for work in self.context.demands for group in work.critical):
            return "history failed or hardly ever succeeded without it; state it as must_not_contain if it is meant"
        self.lacks.add(task)
        return None

    def _order(self, demand: RuleDemand, tasks: tuple[str, ...], role: str) -> str | None:
        first, then = tasks
        if first == then:
            return "both of its clauses name the same step"
        if _reaches(self.pairs, then, first):
            return f"{STATED} or another rule demands the contrary"
        if not demand.strong and (then, first) in self.context.precedence:
            return "history does it the other way round, and the sentence does not say must"
        if not _reaches(self.context.wfg.edges, first, then):
            return "no way in which history did this work goes in this order"
        self.pairs.add((first, then))
        return None

    def _share(self, task: str) -> float:
        right = [c for c in self.context.demands[0].cases if c.success is not False]
        whole = sum(c.weight for c in right)
        return sum(c.weight for c in right if task in c.tasks) / whole if whole else 0.0


def _in_words(demand: RuleDemand, names: Sequence[str]) -> str:
    if demand.kind == "deadlines" and demand.figure is not None:
        return deadline_of(demand.figure, *names).words
    if demand.value is not None:
        return f"{demand.value:g}"
    return (" or " if demand.kind in CHOICES else " before ").join(names)


def deadline_of(figure: Figure, step: str, after: str | None = None) -> StepDeadline:
    """The deadline of a step, in the unit of its sentence as far as deadlines have it."""
    units: dict[tuple[str, bool], Unit] = {
        ("hour", True): "working_hours",
        ("day", True): "working_days",
        ("day", False): "days",
    }
    unit = units.get((figure.unit, figure.calendar == "working"))
    within = hours(figure) if unit is None else figure.amount
    return StepDeadline(step=step, within=within, unit=unit or "hours", after=after)


def _reaches(pairs: "set[Pair] | Mapping[Pair, object]", start: str, end: str) -> bool:
    """Does a walk along the pairs lead from start to end?"""
    after: dict[str, list[str]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
    seen, left = {start}, [start]
    while left:
        for node in after.get(left.pop(), ()):
            if node == end:
                return True
            if node not in seen:
                seen.add(node)
                left.append(node)
    return False
