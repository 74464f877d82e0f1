"""Writes the life of a received record into the design guide: its states, its drawing, and its whole table."""

from __future__ import annotations

from pathlib import Path

from jmsaio.rules.record_life import MEANINGS, MEMORY, PULSAR_CLIENT, TABLE, WIRE, Action, RecordEvent, RecordState

GUIDE = Path(__file__).parents[1] / "jmsaio" / "guide" / "design.md"
BEGIN = "<!-- The life of a record, written by .mkdocs/record_life.py -->"
END = "<!-- End of the life of a record -->"


def life() -> str:
    """Return the generated part of the guide."""
    return f"{states()}\n\n```mermaid\n{diagram()}\n```\n\n{table()}"


def states() -> str:
    """Return the meaning of each state, and which transports have it."""
    lines = ["| state | meaning | embedded broker | pulsar-client | own protocol |", "|---|---|---|---|---|"]
    for state in RecordState:
        having = " | ".join("yes" if state in states else "" for states in (MEMORY, PULSAR_CLIENT, WIRE))
        lines.append(f"| {_name(state)} | {MEANINGS[state]} | {having} |")
    return "\n".join(lines)


def diagram() -> str:
    """Return the drawing: the steps from one state to another, except those that forget a record."""
    lines = ["stateDiagram-v2", *(f'  state "{_name(state)}" as {state.name}' for state in RecordState)]
    for state in RecordState:
        edges: dict[RecordState, list[str]] = {}
        for event in RecordEvent:
            step = TABLE[state, event]
            if step.state is not state and step.state is not RecordState.UNKNOWN:
                edges.setdefault(step.state, []).append(event.value)
        lines += [f"  {state.name} --> {to.name}: {' / '.join(events)}" for to, events in edges.items()]
    return "\n".join(lines)


def table() -> str:
    """Return the outcome of every event in every state; the states of an event with the same outcome share a row."""
    lines = ["| event | in state | next state | action |", "|---|---|---|---|"]
    for event in RecordEvent:
        outcomes: dict[tuple[RecordState | None, Action, bool], list[RecordState]] = {}
        for state in RecordState:
            step = TABLE[state, event]
            to = None if step.state is state else step.state
            outcomes.setdefault((to, step.action, step.counted), []).append(state)
        rows = sorted(outcomes.items(), key=lambda row: len(row[1]))
        for (to, action, counted), found in rows:
            where = "all others" if found is rows[-1][1] and rows[1:] else ", ".join(map(_name, found))
            then = action.value + (", count 1 more" if counted else "")
            lines.append(f"| {event.value} | {where} | {'' if to is None else _name(to)} | {then} |")
    return "\n".join(lines)


def _name(state: RecordState) -> str:
    return state.name.lower().replace("_", " ")


def write() -> None:
    """Replace the generated part of the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    GUIDE.write_text(f"{before}{BEGIN}\n\n{life()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
