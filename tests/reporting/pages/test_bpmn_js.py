"""Exported BPMN opens in bpmn-js in a headless Chromium: a real client reads it without a warning.

`BPMN_JS` names a folder in which `npm install bpmn-js` was run; Chromium comes from Debian.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.edits import applied
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_writer import patched_bpmn, write_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import Call, Flow, Parallel, identified

VIEWER = Path(os.environ.get("BPMN_JS", "nowhere")) / "node_modules/bpmn-js/dist/bpmn-viewer.production.min.js"
CHROMIUM = shutil.which("chromium") or ""
TEXT = """xs = A()
for x in xs:
  if x.a == "<b>":
    y = B()
  elif x.c:
    z = user_task("it's 'so'")
  else:
    w = C()"""
SCRIPT = """
const files = JSON.parse(document.getElementById("files").textContent);
(async () => {
  const told = [];
  for (const xml of files) {
    const viewer = new BpmnJS({container: "#canvas"});
    try {
      const {warnings} = await viewer.importXML(xml);
      told.push({shapes: viewer.get("elementRegistry").getAll().length, warnings: warnings.map(w => w.message)});
    } catch (error) { told.push({error: error.message}); }
    viewer.destroy();
  }
  document.getElementById("told").textContent = JSON.stringify(told);
})();
"""


@pytest.mark.long
@pytest.mark.skipif(not VIEWER.is_file(), reason="BPMN_JS names no folder with bpmn-js; npm installs it")
@pytest.mark.skipif(not CHROMIUM, reason="there is no chromium on PATH; Debian has it")
def test_bpmn_js_opens_every_kind_of_export_without_a_warning(tmp_path: Path) -> None:
    flow = identified(Flow((*parse_ir(TEXT).body, Parallel(((Call("D", "d"),), (Call("E", "e"),)))), "A <title>"))
    plain = write_bpmn(flow)
    after = identified(parse_ir(TEXT.replace("w = C()", "w = C()\n    v = F()") + "\nwhile xs.more:\n  u = G()"))
    read = read_bpmn(plain).flow
    edited = patched_bpmn(plain, applied(read, difference(read, after)))
    files = [plain, write_bpmn(after, camunda=True), edited, write_bpmn(Flow())]
    data = json.dumps([content.decode() for content in files]).replace("<", "\\u003c")
    page = tmp_path / "page.html"
    page.write_text(
        '<meta charset="utf-8"><div id="canvas" style="height:600px"></div><pre id="told"></pre>'
        f'<script type="application/json" id="files">{data}</script>'
        f"<script>{VIEWER.read_text('utf-8')}</script><script>{SCRIPT}</script>",
        "utf-8",
    )
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--virtual-time-budget=20000", "--dump-dom", page.as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout
    found = re.search(r'<pre id="told">(.*?)</pre>', dumped, re.DOTALL)
    assert found is not None
    told = json.loads(found[1])
    assert [each.get("warnings") for each in told] == [[], [], [], []], told
    assert [each["shapes"] > 3 for each in told] == [True, True, True, True]
