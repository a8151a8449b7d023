from dataclasses import replace
from types import SimpleNamespace

from opus_pipelines.workflow.formats.registry import as_mermaid


def test_a_lane_an_actor_and_a_node_a_step(faces: SimpleNamespace) -> None:
    assert (
        as_mermaid(faces.refund())
        == """\
%% Refund desk
flowchart LR
    subgraph lane0["Client"]
        n0(["Mail"])
        n1(["Order"])
        n8(["Money"])
        n9(["Answer"])
    end
    subgraph lane1["quill-2"]
        n2["Read mail<br/>0.1000 USD, 2.0 s, 231 cases"]
    end
    subgraph lane2["Software"]
        n3["Refund desk<br/>0.0020 USD, 0.3 s"]
        n7["Pay<br/>0.0020 USD, 0.5 s"]
    end
    subgraph lane3["Refund team"]
        n4["Decide<br/>2.50 USD, 5.0 min, 1 case"]
    end
    subgraph lane4["No role stated"]
        n5["Log it<br/>0.00 USD, 0.1 s"]
    end
    subgraph lane5["People"]
        n6["Review: Second look<br/>1.50 USD, 2.0 min"]
    end
    n2 -->|"facts"| n4
    n2 --> n9
    n3 --> n4
    n3 --> n5
    n4 --> n6
    n7 --> n8
    n7 --> n9
    n0 --> n2
    n1 --> n3
    n6 --> n7
    classDef review stroke-width:3px,stroke-dasharray:6 3
    class n6 review
"""
    )


def test_titles_cannot_be_syntax(faces: SimpleNamespace) -> None:
    text = as_mermaid(faces.refund(faces.hostile))
    assert "<script" not in text.replace(text.splitlines()[0], "")
    assert "%%{" not in text
    assert "{" not in text.splitlines()[0]


def test_a_review_that_is_called_one_is_called_so_once(faces: SimpleNamespace) -> None:
    found = faces.refund()
    tasks = tuple(
        t.model_copy(update={"title": "Review: Decide"}) if t.kind == "review" else t for t in found.file.tasks
    )
    assert '["Review: Decide<br/>' in as_mermaid(replace(found, file=found.file.model_copy(update={"tasks": tasks})))
