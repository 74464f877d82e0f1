"""``jmsaio doctor``: checks what a broker lacks, with the consequences and what to change."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from jmsaio.cli.common.connecting import Source, broker_options
from jmsaio.cli.common.output import ERROR, OK, Output, json_option, printable
from jmsaio.config import load
from jmsaio.model.destinations import Topic, resolve

if TYPE_CHECKING:
    from jmsaio.maintenance.diagnosis import Check, CheckState

_STYLES = {"ok": "green", "warning": "yellow", "missing": "bold red", "unknown": "dim"}


@click.command()
@broker_options(embedded=True)
@click.option(
    "--need",
    type=click.Choice(["produce", "consume", "administer"]),
    multiple=True,
    default=("produce", "consume"),
    show_default=True,
    help="Permission in the namespace; the exit code is 1 if it is missing. Repeatable.",
)
@click.option(
    "-t", "--topic", metavar="NAME",
    help="An existing topic or queue to test permissions on, if the broker creates none. Nothing is sent or received.",
)  # fmt: skip
@json_option
async def doctor(source: Source, need: tuple[str, ...], topic: str | None, output: Output) -> int:
    """Check what a broker lacks, with the consequences and what to change.

    Checks whether the broker is reachable and accepts this client, the client's permissions in jms.systemNamespace,
    the REST interface, and the settings of broker and namespace that matter to JMS. Nothing on the broker is changed.

    The exit code is 1 if something needed is missing; warnings don't count.
    """
    from jmsaio.maintenance.diagnosis import CHECKS, CheckState, Facts
    from jmsaio.transport import registry

    config = load(source)
    if config.in_process:
        found = "the embedded broker is part of each process that uses it: nothing is needed"
        output.result({"check": "broker", "state": "ok", "found": found}, found)
        return OK
    full = None if topic is None else resolve(Topic(topic), config.system_namespace).topics[0]
    facts = Facts(config, frozenset(need), await registry.collect_facts(config, full))
    counts: Counter[CheckState] = Counter()
    unknown: dict[str, list[str]] = {}
    for check in CHECKS:
        state, found = check.judge(facts)
        counts[state] += 1
        if state is CheckState.UNKNOWN and not output.as_json:
            unknown.setdefault(found, []).append(check.name)
        else:
            _write(output, check, state, found, check.change.replace("NAMESPACE", config.system_namespace))
    for reason, names in unknown.items():
        output.line(printable(f"unknown  {', '.join(names)}: {reason}"), _STYLES["unknown"])
    output.remark(", ".join(f"{count} {state.value}" for state, count in counts.items()))
    return ERROR if counts[CheckState.MISSING] else OK


def _write(output: Output, check: Check, state: CheckState, found: str, change: str) -> None:
    wrong = state.value in ("warning", "missing")
    if output.as_json:
        output.record({
            "check": check.name, "state": state.value, "question": check.question, "found": found,
            "consequence": check.consequence if wrong else None, "change": change if wrong else None,
        })  # fmt: skip
        return
    output.line(printable(f"{state.value:8} {check.name}: {found}"), _STYLES[state.value])
    if wrong:
        output.line(f"{'':9}{check.consequence}")
        output.line(f"{'':9}To do: {change}")
