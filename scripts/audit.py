"""Asks for known vulnerabilities of the locked packages: scripts/audit.py requirements.lock.

Exit codes: 0 none is known, 1 some are, 2 not every package could be asked about. The last is an error too: what was
not asked has not passed.
"""

import json
import subprocess
import sys
from typing import Any

COMMAND = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off"]


def verdict(dependencies: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Returns the exit code and the lines to print for the dependencies of pip-audit's answer."""
    unasked = [one for one in dependencies if "skip_reason" in one]
    lines = [
        f"{one['name']} {one['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'none yet'}"
        for one in dependencies
        for found in one.get("vulns", ())
    ]
    known = len(lines)
    if unasked:
        first = unasked[0]
        lines.append(f"{len(unasked)} of {len(dependencies)} packages could not be asked about: {first['skip_reason']}")
    if not lines:
        lines.append(f"{len(dependencies)} packages: no known vulnerability")
    return (1 if known else 2 if unasked else 0), lines


def main(lock: str) -> int:
    """Runs pip-audit and prints what it found."""
    done = subprocess.run([*COMMAND, "-f", "json", "-r", lock], capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        last = (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]
        print(f"the index of vulnerabilities could not be asked: {last}", file=sys.stderr)
        return 2
    code, lines = verdict(dependencies)
    print("\n".join(lines), file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
