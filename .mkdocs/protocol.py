"""Writes the state machines of Pulsar's protocol into the design guide: their transitions, as the code has them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path

from jmsaio.protocol import handshake, producing, transacting
from jmsaio.protocol.commands import Command
from jmsaio.protocol.requests import ANSWERS

GUIDE = Path(__file__).parents[1] / "jmsaio" / "guide" / "design.md"
BEGIN = "<!-- The state machines, written by .mkdocs/protocol.py -->"
END = "<!-- End of the state machines -->"


def machines() -> str:
    """Return the generated part of the guide."""
    steps = {(state, Command(command).name): to for (state, command), to in handshake.TRANSITIONS.items()}
    batches = {(state, event.value): to for (state, event), to in producing.TRANSITIONS.items()}
    transactions = {(state, event.value): to for (state, event), to in transacting.TRANSITIONS.items()}
    answers = [f"| {request.name} | {answer.name} |" for request, answer in ANSWERS.items()]
    return "\n".join(
        [
            "A connection that is being accepted (`protocol/handshake.py`):",
            "",
            *table("command of the broker", steps),
            "",
            "A batch that is sent (`protocol/producing.py`):",
            "",
            *table("event", batches),
            "",
            "A transaction (`protocol/transacting.py`):",
            "",
            *table("event", transactions),
            "",
            "A request and its answer (`protocol/requests.py`); ERROR answers any of them:",
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


def write() -> None:
    """Replace the generated part of the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    GUIDE.write_text(f"{before}{BEGIN}\n\n{machines()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
