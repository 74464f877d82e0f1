"""Writes the state machines of Pulsar's protocol, as the code has them, into the guides of design and transactions."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path

from jmsaio.protocol import transacting
from jmsaio.protocol.commands import ANSWERS

_GUIDES = Path(__file__).parents[1] / "jmsaio" / "guide"
GUIDE, TRANSACTIONS = _GUIDES / "design.md", _GUIDES / "transactions.md"
BEGIN = "<!-- The state machines, written by .mkdocs/protocol.py -->"
END = "<!-- End of the state machines -->"


def machines() -> str:
    """Return the generated part of the guide."""
    transactions = {(state, event.value): to for (state, event), to in transacting.TRANSITIONS.items()}
    answers = [f"| {request.name} | {answer.name} |" for request, answer in ANSWERS.items()]
    return "\n".join(
        [
            "A transaction (`protocol/transacting.py`):",
            "",
            *table("event", transactions),
            "",
            "A request and its answer (`protocol/commands.py`); ERROR answers any of them:",
            "",
            "| request | answer |",
            "|---|---|",
            *answers,
        ]
    )


def table(event: str, transitions: Mapping[tuple[enum.Enum, str], enum.Enum]) -> list[str]:
    """Return the rows of a table, one for each transition."""
    rows = [f"| {state.value} | {name} | {to.value} |" for (state, name), to in transitions.items()]
    return [f"| state | {event} | next state |", "|---|---|---|", *rows]


def transaction() -> str:
    """Return the drawing of a transaction's life."""
    lines = ["```mermaid", "stateDiagram-v2", "  [*] --> OPEN: begin"]
    lines += [f'  state "{state.value}" as {state.name}' for state in transacting.State]
    edges: dict[tuple[enum.Enum, enum.Enum], list[str]] = {}
    for (state, event), to in transacting.TRANSITIONS.items():
        edges.setdefault((state, to), []).append(event.value.replace(":", ","))  # a colon ends a name there
    lines += [f"  {state.name} --> {to.name}: {' / '.join(events)}" for (state, to), events in edges.items()]
    return "\n".join([*lines, "```"])


def write() -> None:
    """Replace the generated parts of the guides."""
    for guide, part in ((GUIDE, machines()), (TRANSACTIONS, transaction())):
        before, _, rest = guide.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        guide.write_text(f"{before}{BEGIN}\n\n{part}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
