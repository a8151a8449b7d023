from typing import Any

from opus_pipelines.core.formatting import mermaid_text
from opus_pipelines.reporting.graphs.mermaid import mermaid
from opus_pipelines.reporting.graphs.model import Change, Picture


def test_a_flowchart_from_left_to_right(draws: Any) -> None:
    nodes = (draws.node("x", "Check it", group="g"), draws.node("y", change=Change.REMOVED, figures=""))
    edges = (draws.edge("x", "y", 0.5), draws.edge("y", "x", 0.0, label="", change=Change.REMOVED))
    assert mermaid(Picture("WKG", "2 of 3\nsnapshot w1", nodes, edges, (("g", "G"),))).splitlines() == [
        "%% WKG",
        "%% 2 of 3",
        "%% snapshot w1",
        "flowchart LR",
        '    n0["Check it<br/>1,234 · p 0.95"]',
        '    n1["− Pay"]',
        '    n0 -->|"1,520"| n1',
        "    n1 -.-> n0",
        "    classDef c0 fill:#8dc6d9,stroke:#008ab8,color:#1c2430",
        "    class n0 c0",
        "    classDef c1 fill:#fad4cf,stroke:#c22f1e,color:#1c2430",
        "    class n1 c1",
        "    linkStyle 0 stroke:#66707d,stroke-width:1.6px",
        "    linkStyle 1 stroke:#c22f1e,stroke-width:6.5px",
    ]


def test_what_could_be_syntax_is_spelled_as_codes() -> None:
    assert mermaid_text('"]--> x%%{init}%% <b>#') == '"#34;#93;--#62; x#37;#37;#123;init#125;#37;#37; #60;b#62;#35;"'


def test_a_title_cannot_hold_a_directive(hostile: Picture) -> None:
    text = mermaid(Picture("%%{init: {'securityLevel': 'loose'}}%%", "a\nb", hostile.nodes, hostile.edges))
    assert "%%{" not in text
    assert "<script" not in text
