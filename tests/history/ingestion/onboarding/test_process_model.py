"""What `opus init` shows of a process model: names of tasks instead of ids, and lanes as those who do the work."""

from pathlib import Path

from opus_pipelines.history.ingestion.onboarding.propose import propose_settings
from opus_pipelines.history.ingestion.onboarding.report import Stated, report

MODEL = """<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p">
<laneSet id="l"><lane id="l1" name="Warehouse"><flowNodeRef>t1</flowNodeRef><flowNodeRef>t2</flowNodeRef></lane>
<lane id="l2" name="Secretary"><flowNodeRef>t3</flowNodeRef></lane></laneSet>
<task id="t1" name="Package goods"/><task id="t2" name="Check"/><task id="t3" name="Check"/>
<task id="t4" name="Insure"/>
<sequenceFlow id="f1" sourceRef="t1" targetRef="t2"/><sequenceFlow id="f2" sourceRef="t2" targetRef="t3"/>
<sequenceFlow id="f3" sourceRef="t3" targetRef="t4"/></process></definitions>"""


def test_tasks_are_shown_by_name_and_lanes_as_who_does_them(tmp_path: Path) -> None:
    (tmp_path / "shop.bpmn").write_text(MODEL)
    with propose_settings("shop", [tmp_path / "shop.bpmn"], Stated()) as proposal:
        lines = report(proposal.trial, proposal.findings)
    shown = [line.split("  step")[0].strip() for line in lines[lines.index("Activities") + 2 :]]
    assert shown == ["Package goods", "Check (t2)", "Check (t3)", "Insure"]
    (resources,) = (line for line in lines if line.split()[:1] == ["resources"])
    assert ("3 drawn" in resources, "Secretary, Warehouse" in resources) == (True, True)
