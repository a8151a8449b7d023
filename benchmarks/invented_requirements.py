#!/usr/bin/env python3
"""Write the 300 requirements of the invented enterprise with their flows, by a seeded grammar over its catalogue.

.venv/bin/python -m benchmarks.invented_requirements > opus_pipelines/flows/enterprise/world/generated.toml
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from opus_pipelines.flows.enterprise.catalogue import Catalogue, Column, Table
from opus_pipelines.flows.enterprise.examples import world_catalogue

Requirement = tuple[str, str, tuple[str, ...]]  # marked text, script of the flow, tags
COUNT, SEED = 300, 18
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_MESSAGES = ("Please take a look", "This needs your attention", "We are working on it", "Your request is complete")
_CHANNELS = ("#operations", "#helpdesk", "#alerts", "#it-changes")
_GROUPS = ("Service Desk", "Network Operations", "Database Team", "Security Operations", "Facilities", "Payroll")
_PLAIN = {  # actions whose inputs no requirement states
    "page_on_call": ("page the on-call engineer", "page the engineer who is on call"),
    "create_jira_issue": ("create a Jira issue", "open an issue in Jira"),
    "create_github_issue": ("create a GitHub issue", "open a GitHub issue"),
    "run_script": ("run a script", "execute the repair script"),
    "restart_service": ("restart the service", "restart the affected service"),
    "create_virtual_machine": ("provision a virtual machine", "create a virtual machine"),
    "run_vulnerability_scan": ("run a vulnerability scan", "scan the server for vulnerabilities"),
    "create_teams_meeting": ("schedule a Teams meeting", "set up a Teams meeting"),
    "create_calendar_event": ("create a calendar event", "add a calendar event"),
    "create_slack_channel": ("create a Slack channel", "create a new Slack channel for it"),
    "post_teams_message": ("post a message in Teams", "send a message in Microsoft Teams"),
    "send_rest_request": ("send a REST request", "call the external API"),
}
_PERSONAL = {  # actions on a user
    "reset_password": "reset the password of the {0}",
    "disable_ad_user": "disable the Active Directory account of the {0}",
    "unlock_ad_user": "unlock the Active Directory account of the {0}",
    "create_mailbox": "create a mailbox for the {0}",
    "look_up_manager": "look up the manager of the {0}",
}
_STRANGE = ("launch the rocket", "water the office plants", "feed the printer hamster")


@dataclass
class _Draft:
    """A requirement in the making. `record` is the pill of the record in hand, `table` its table."""

    draw: random.Random
    catalogue: Catalogue
    table: Table | None = None
    record: str = ""
    lines: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    depth: int = 0

    def step(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def choice(self, *texts: str) -> str:
        return self.draw.choice(texts)

    def columns(self, *kinds: str) -> list[Column]:
        return [c for c in self.table.columns.values() if c.type in kinds] if self.table else []

    def people(self) -> list[Column]:
        return [c for c in self.columns("reference") if c.reference == "sys_user"]

    def condition(self) -> tuple[str, Column, str] | None:
        """A value of a column: label, column and value."""
        columns = self.columns("choice")
        if not columns:
            return None
        column = self.draw.choice(columns)
        value = self.draw.choice(list(column.choices))
        return column.choices[value], column, value


def generated(catalogue: Catalogue, count: int, seed: int) -> list[Requirement]:
    """Returns `count` different requirements; the same seed gives the same ones."""
    draw = random.Random(seed)
    found: dict[str, Requirement] = {}
    while len(found) < count:
        made = _requirement(_Draft(draw, catalogue))
        found.setdefault(made[0], made)
    return list(found.values())


def _requirement(draft: _Draft) -> Requirement:
    draw = draft.draw
    opening = _trigger(draft)
    parts: list[str] = []
    if draft.table is None or draw.random() < 0.25:
        parts.append(_loop(draft))
    else:
        parts += _steps(draft, draw.choice((1, 2, 2, 3)))
        if draw.random() < 0.45:
            parts.append(draw.choice((_if, _approval, _parallel, _try, _until, _if, _approval))(draft))
    if draw.random() < 0.05:
        parts.append(draw.choice(_STRANGE))
        draft.tags.append("out of scope")
    return f"{opening}, {_joined(parts, draft)}.", "\n".join(draft.lines), tuple(draft.tags)


def _joined(parts: list[str], draft: _Draft) -> str:
    if len(parts) == 1:
        return parts[0]
    return draft.choice(", ", ", then ", ". Then ", " and ").join([", ".join(parts[:-1]), parts[-1]])


def _trigger(draft: _Draft) -> str:
    draw = draft.draw
    kind = draw.choice(("record_create", "record_create", "record_update", "record_update", "other"))
    if kind == "other":
        return _timed(draft)
    draft.table = draw.choice(list(draft.catalogue.tables.values()))
    label, chosen = draft.table.label.lower(), draft.condition()
    if kind == "record_create" and draw.random() < 0.15:
        kind = "record_create_or_update"
    draft.record = f"{{{{{kind}.current}}}}"
    verb = {"record_create": "created", "record_update": "updated"}.get(kind, "created or updated")
    if chosen is None or draw.random() < 0.35:
        draft.step(f"when {kind} table={draft.table.name}")
        return f"[{draft.choice('When', 'Whenever')} {_a(label)} is {verb}]"
    shown, column, value = chosen
    if kind == "record_update" and draw.random() < 0.7:
        draft.step(f"when {kind} table={draft.table.name} | condition={column.name}CHANGESTO{value}")
        return "[" + draft.choice(
            f"When the {column.label} of {_a(label)} changes to {shown}",
            f"Once {_a(label)} has its {column.label} changed to {shown}",
        ) + "]"  # fmt: skip
    draft.step(f"when {kind} table={draft.table.name} | condition={column.name}={value}")
    return "[" + draft.choice(
        f"When {_a(label)} is {verb} and its {column.label} is {shown}",
        f"Whenever {_a(label)} with {column.label} {shown} is {verb}",
    ) + "]"  # fmt: skip


def _timed(draft: _Draft) -> str:
    draw = draft.draw
    day, hour, count = draw.choice(_DAYS), f"{draw.randint(1, 23):02}:00", draw.randint(2, 12)
    triggers: dict[str, tuple[str, str, str]] = {
        "daily": (f"time={hour}", "", f"Every day at {hour}"),
        "weekly": (f"day={day}", "", draft.choice(f"Every {day}", f"Each week on {day}")),
        "monthly": (f"day={count}", "", f"Every month on day {count}"),
        "repeat": (f"every={count} hours", "", f"Every {count} hours"),
        "email": ("", "", draft.choice("When an email is received", "When an e-mail arrives")),
        "sla_task": ("", "incident", draft.choice("When an SLA is about to breach", "When an SLA has breached")),
        "service_catalog": ("", "sc_req_item", "When a catalog item is requested"),
        "rest_async": ("", "", "When the flow is called over REST"),
    }
    kind = draw.choice(list(triggers))
    given, table, text = triggers[kind]
    draft.step(f"when {kind} {given}".strip())
    if table:
        draft.table = draft.catalogue.tables[table]
        output = "task" if kind == "sla_task" else "requested_item"
        draft.record = f"{{{{{kind}.{output}}}}}"
    return f"[{text}]"


def _steps(draft: _Draft, count: int) -> list[str]:
    used: list[str] = []
    texts: list[str] = []
    while len(texts) < count:
        kind = draft.draw.choice(list(_WRITERS))
        text = None if kind in used else _WRITERS[kind](draft)
        used.append(kind)
        if text is not None:
            texts.append(text)
        elif len(used) > 60:
            break
    return texts


def _set_value(draft: _Draft) -> str | None:
    chosen = draft.condition()
    if chosen is None or not draft.record:
        return None
    shown, column, value = chosen
    draft.step(f"update_record record={draft.record} | values={column.name}={value}")
    return "[" + draft.choice(
        f"set its {column.label} to {shown}",
        f"change the {column.label} to {shown}",
        f"update the {column.label} to {shown}",
    ) + "]"  # fmt: skip


def _assign(draft: _Draft) -> str | None:
    if draft.table is None or "assignment_group" not in draft.table.columns:
        return None
    group = draft.draw.choice(_GROUPS)
    draft.step(f"update_record record={draft.record} | values=assignment_group={group.lower().replace(' ', '_')}")
    return f"[assign it to {draft.choice('the group ', '')}{group}]"


def _tell(draft: _Draft) -> str | None:
    action, forms, content = draft.draw.choice(
        (
            ("send_email", ("send an email to {0}", "email {0}"), "body"),
            ("send_notification", ("send a notification to {0}", "notify {0}"), "notification"),
            ("send_sms", ("send an SMS to {0}", "send a text message to {0}"), "message"),
        )
    )
    people = draft.people()
    if people:
        column = draft.draw.choice(people)
        target, who = f"{draft.record[:-2]}.{column.name}}}}}", f"the {column.label}"
    else:
        who = draft.draw.choice(_GROUPS)
        target = who
    line, text = f"{action} to={target}", draft.draw.choice(forms).format(who)
    if draft.draw.random() < 0.3:
        message = draft.draw.choice(_MESSAGES)
        line, text = f"{line} | {content}={message}", f'{text} saying "{message}"'
    draft.step(line)
    return f"[{text}]"


def _channel(draft: _Draft) -> str:
    channel = draft.draw.choice(_CHANNELS)
    draft.step(f"post_slack_message channel={channel}")
    return f"[post a message {draft.choice('to the Slack channel', 'in Slack to')} {channel}]"


def _note(draft: _Draft) -> str | None:
    if not draft.record:
        return None
    message = draft.draw.choice(_MESSAGES)
    if draft.draw.random() < 0.5:
        draft.step(f"add_work_note record={draft.record} | note={message}")
        return f'[add a work note "{message}"]'
    draft.step(f"log message={message}")
    return f'[log the message "{message}"]'


def _wait(draft: _Draft) -> str:
    count, unit = draft.draw.randint(2, 9), draft.choice("hours", "days", "minutes")
    draft.step(f"wait_for_duration duration={count} {unit}")
    return f"[wait for {count} {unit}]"


def _create(draft: _Draft) -> str:
    other = draft.draw.choice(list(draft.catalogue.tables.values()))
    own = _Draft(draft.draw, draft.catalogue, other)
    chosen = own.condition()
    if chosen is None or draft.draw.random() < 0.5:
        draft.step(f"create_record table={other.name}")
        return f"[create {_a(other.label.lower())} record]"
    shown, column, value = chosen
    draft.step(f"create_record table={other.name} | values={column.name}={value}")
    return f"[create {_a(other.label.lower())} with {column.label} {shown}]"


def _plain(draft: _Draft) -> str:
    action = draft.draw.choice(list(_PLAIN))
    draft.step(action)
    return f"[{draft.draw.choice(_PLAIN[action])}]"


def _personal(draft: _Draft) -> str | None:
    people = draft.people()
    if not people:
        return None
    action, column = draft.draw.choice(list(_PERSONAL)), draft.draw.choice(people)
    draft.step(f"{action} user={draft.record[:-2]}.{column.name}}}}}")
    return f"[{_PERSONAL[action].format(column.label)}]"


def _document(draft: _Draft) -> str | None:
    if not draft.record:
        return None
    draft.step(f"generate_pdf record={draft.record}")
    draft.step("upload_to_sharepoint file={{generate_pdf.file}}")
    return "[generate a PDF of it] and [upload it to SharePoint]"


_WRITERS: dict[str, Callable[[_Draft], str | None]] = {
    "set value": _set_value,
    "assign": _assign,
    "tell": _tell,
    "channel": _channel,
    "note": _note,
    "wait": _wait,
    "create": _create,
    "plain": _plain,
    "personal": _personal,
    "document": _document,
}


def _inside(draft: _Draft, count: int = 1) -> str:
    draft.depth += 1
    texts = _steps(draft, count)
    draft.depth -= 1
    return " and ".join(texts)


def _if(draft: _Draft) -> str:
    chosen = draft.condition()
    if chosen is None:
        return _parallel(draft)
    shown, column, value = chosen
    draft.step(f"IF condition={draft.record[:-2]}.{column.name}}}}}={value}")
    text = f"[if the {column.label} is {shown}], {_inside(draft)}"
    if draft.draw.random() < 0.4:
        draft.step("ELSE")
        text += f", [{draft.choice('otherwise', 'else')}] {_inside(draft)}"
    return text


def _approval(draft: _Draft) -> str:
    people = draft.people()
    if not people:
        return _if(draft)
    column = draft.draw.choice(people)
    draft.step(f"ask_for_approval record={draft.record} | approver={draft.record[:-2]}.{column.name}}}}}")
    draft.step("IF condition={{ask_for_approval.approved}}=true")
    text = f"[ask the {column.label} for approval]. [If it is approved], {_inside(draft)}"
    if draft.draw.random() < 0.6:
        draft.step("ELSE")
        text += f", [{draft.choice('otherwise', 'if it is rejected')}] {_inside(draft)}"
    return text


def _parallel(draft: _Draft) -> str:
    draft.step("PARALLEL")
    return f"[{draft.choice('in parallel', 'at the same time')}] {_inside(draft, 2)}"


def _try(draft: _Draft) -> str:
    draft.step("TRY")
    text = f"[try to] {_inside(draft)}"
    draft.step("CATCH")
    return f"{text}, [{draft.choice('if that fails', 'in case of an error')}] {_inside(draft)}"


def _until(draft: _Draft) -> str:
    chosen = draft.condition()
    if chosen is None:
        return _try(draft)
    shown, column, value = chosen
    draft.step(f"DOUNTIL condition={draft.record[:-2]}.{column.name}}}}}={value}")
    return f"[repeat until the {column.label} is {shown}]: {_inside(draft)}"


def _loop(draft: _Draft) -> str:
    draft.table = draft.draw.choice(list(draft.catalogue.tables.values()))
    plural, chosen = _plural(draft.table.label.lower()), draft.condition()
    where, condition = "", ""
    if chosen is not None:
        shown, column, value = chosen
        where = draft.choice(f" whose {column.label} is {shown}", f" with {column.label} {shown}")
        condition = f" | conditions={column.name}={value}"
    draft.step(f"look_up_records table={draft.table.name}{condition}")
    draft.step("FOREACH items={{look_up_records.records}}")
    draft.record = "{{foreach.item}}"
    people = draft.people()
    if people and draft.draw.random() < 0.15:  # nothing says that records are looked up
        column = draft.draw.choice(people)
        draft.step(f"  send_email to={{{{foreach.item.{column.name}}}}}")
        draft.tags.append("implicit")
        return f"[3|email the {column.label} of] [1,2|every {draft.table.label.lower()}{where}]"
    found = f"[{draft.choice('look up', 'find', 'get')} all {plural}{where}]"
    text = f"{found} and [{draft.choice('for each of them', 'for each one')}] "
    return text + _inside(draft, draft.draw.choice((1, 1, 2)))


def _a(label: str) -> str:
    return f"{'an' if label[0] in 'aeio' or label.startswith('hr ') else 'a'} {label}"


def _plural(label: str) -> str:
    return label[:-1] + "ies" if label.endswith("y") else label + "s"


def toml_of(made: list[Requirement]) -> str:
    """Returns the requirements as TOML, in the form of the handwritten ones."""
    lines = ["# Made by benchmarks/invented_requirements.py; the form is that of handwritten.toml."]
    for text, script, tags in made:
        lines += ["", "[[requirement]]", f"text = {json.dumps(text, ensure_ascii=False)}"]
        lines += [f"tags = {json.dumps(tags)}"] if tags else []
        lines += ['flow = """', script, '"""']
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(toml_of(generated(world_catalogue(), COUNT, SEED)), end="")
