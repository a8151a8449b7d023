"""The runs of small BPMN files: what each element means for the cases that are compared with it."""

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.conformance.net import START, Net, has_ended, net_of_bpmn

MODEL = '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">{}</definitions>'
LOOP, EACH = "<standardLoopCharacteristics/>", "<multiInstanceLoopCharacteristics/>"


def nodes(elements: str, flows: str) -> str:
    """Elements as "id:tag" and flows as "from>to"; a task's id is its name, and "task+loop" has a loop marker."""
    text = ""
    for element in elements.split():
        ident, tag = element.split(":")
        tag, _, marker = tag.partition("+")
        text += f'<{tag} id="{ident}">{ {"loop": LOOP, "each": EACH}.get(marker, "") }</{tag}>'
    for number, flow in enumerate(flows.split()):
        source, target = flow.split(">")
        text += f'<sequenceFlow id="f{source}{number}" sourceRef="{source}" targetRef="{target}"/>'
    return text


def bpmn(elements: str, flows: str, more: str = "") -> bytes:
    return MODEL.format(f'<process id="p">{nodes(elements, flows)}{more}</process>').encode()


def runs(net: Net, longest: int = 4) -> set[str]:
    """The labels of every run of at most `longest` steps, joined."""
    seen, found, open_ = set(), set(), [(START, "")]
    while open_:
        state = marking, done = open_.pop()
        if state in seen:
            continue
        seen.add(state)
        if has_ended(marking):
            found.add(done)
        for transition in net.enabled(marking):
            run = done + (net.labels[transition] or "")
            if len(run) <= longest:
                open_.append((net.fire(transition, marking), run))
    return found


GATES = "s:startEvent x:exclusiveGateway y:exclusiveGateway e:endEvent a:task b:task"
FORK = "s:startEvent x:parallelGateway y:parallelGateway e:endEvent a:task b:task"
WAYS = "s>x x>a x>b a>y b>y y>e"
INNER = '<subProcess id="u">' + nodes("i:startEvent b:task j:endEvent", "i>b b>j") + "</subProcess>"
STOPPED = INNER + '<boundaryEvent id="v" attachedToRef="u"/>'
MEANWHILE = '<boundaryEvent id="v" attachedToRef="b" cancelActivity="false"/>'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(bpmn("s:startEvent a:userTask b:callActivity e:endEvent", "s>a a>b b>e"), "ab", id="sequence"),
        pytest.param(bpmn("a:task b:task", "a>b"), "ab", id="without events"),
        pytest.param(bpmn(GATES, WAYS), "a b", id="choice"),
        pytest.param(bpmn(FORK, WAYS), "ab ba", id="parallel"),
        pytest.param(bpmn(GATES, "s>x x>a x>y a>y y>b b>e"), "ab b", id="skipped"),
        pytest.param(bpmn(GATES, "s>x x>a a>y y>b b>x y>e"), "a aba", id="loop by gateways"),
        pytest.param(bpmn("a:task+loop b:task", "a>b"), "ab aab aaab", id="loop marker"),
        pytest.param(bpmn("a:task+each b:task", "a>b"), "b ab aab aaab", id="for each"),
        pytest.param(bpmn("a:task b:task c:task", "a>b a>c"), "abc acb", id="two flows out of a task run both"),
        pytest.param(
            bpmn("a:task b:task c:task", "a>c b>c"), "abcc acbc bacc bcac", id="two flows into a task are its own"
        ),
        pytest.param(bpmn("s:startEvent t:startEvent a:task b:task", "s>a t>b"), "a b", id="two start events"),
        pytest.param(bpmn("a:task c:task", "a>u u>c", INNER), "abc", id="sub-process"),
        pytest.param(bpmn("a:task c:task d:task", "a>u u>c v>d", STOPPED), "abc ad abd", id="interrupted sub-process"),
        pytest.param(bpmn("a:task b:task d:task", "a>b v>d", MEANWHILE), "ab adb abd", id="not interrupting"),
    ],
)
def test_runs_of_a_model(content: bytes, expected: str) -> None:
    assert runs(net_of_bpmn(content, "model")) == set(expected.split())


def test_labels_are_names_in_one_line_and_two_processes_run_beside_each_other() -> None:
    one = '<process id="{0}"><task id="t{0}" name="Check\n  {0}"/></process>'
    net = net_of_bpmn(MODEL.format(one.format("A") + one.format("B")).encode(), "model")
    assert sorted(label for label in net.labels if label) == ["Check A", "Check B"]
    assert runs(net, 20) == {"Check ACheck B", "Check BCheck A"}


def test_silent_steps_in_series_are_merged_into_their_neighbours() -> None:
    events = " ".join(f"i{n}:intermediateThrowEvent" for n in range(200))
    flows = " ".join(f"i{n}>i{n + 1}" for n in range(199))
    net = net_of_bpmn(bpmn(f"a:task b:task {events}", f"a>i0 {flows} i199>b"), "model")
    assert net.labels == ["a", "b"]
    assert runs(net) == {"ab"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<definitions", "model:"),
        (b"a,b\n1,2\n", "model:"),
        (bpmn("s:startEvent e:endEvent", "s>e"), "no <process> with a task"),
        (bpmn("a:task g:inclusiveGateway b:task", "a>g g>b"), "inclusiveGateway g"),
        (bpmn("a:task g:adHocSubProcess", "a>g"), "adHocSubProcess g"),
        (bpmn("a:task", "a>gone"), "'gone'"),
        (bpmn("a:task b:task", "a>b b>a"), "p has no element to begin with"),
    ],
)
def test_what_cannot_be_compared_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        net_of_bpmn(content, "model")
