"""The option tables as Markdown, for ``guide/configuration.md``; a test keeps the guide equal to the tables."""

from __future__ import annotations

from collections.abc import Iterable

from jmsaio.config.options import Kind, Option, Section, Status
from jmsaio.config.table import BROKER, JMS, OURS, PULSAR
from jmsaio.config.table_streams import ACK_TIMEOUT_BACKOFF, CONSUMER, DEAD_LETTER, NACK_BACKOFF, PRODUCER

#: Lines around the generated part of the guide.
BEGIN = "<!-- option tables: written by jmsaio.config.document.tables() -->"
END = "<!-- end of the option tables -->"


def tables() -> str:
    """Every option that is built, in tables, and after them the names that are known but not built."""
    everything = (*BROKER, *JMS, *OURS, *PRODUCER, *CONSUMER, *DEAD_LETTER, *PULSAR)
    parts = [
        _table("Broker, security, network", BROKER),
        _table("JMS", JMS),
        _table("Our own", OURS),
        _table("producerConfig", PRODUCER),
        _table("consumerConfig", CONSUMER),
        _table("consumerConfig.deadLetterPolicy", DEAD_LETTER),
        _table("consumerConfig.negativeAckRedeliveryBackoff", NACK_BACKOFF),
        _table("consumerConfig.ackTimeoutRedeliveryBackoff", ACK_TIMEOUT_BACKOFF),
        _refused("Known, not built yet", everything, Status.NOT_BUILT),
        _refused("Without a meaning here", everything, Status.NO_MEANING),
    ]
    return "\n\n".join(parts)


def _table(title: str, options: Iterable[Option]) -> str:
    lines = [f"### {title}", "", "| name | keyword | default | what it does |", "|---|---|---|---|"]
    for option in options:
        if option.status is Status.BUILT:
            keyword = f"`{option.field}`" if option.field and option.field != option.key else ""
            lines.append(f"| `{option.key}` | {keyword} | {_default(option)} | {_note(option)} |")
    return "\n".join(lines)


def _refused(title: str, options: Iterable[Option], status: Status) -> str:
    lines = [f"### {title}", "", "| name | why |", "|---|---|"]
    lines += [f"| `{option.name}` | {_cell(option.note)} |" for option in options if option.status is status]
    return "\n".join(lines)


def _default(option: Option) -> str:
    if option.default is None or option.default in ("", {}):
        return ""
    text = str(option.default).lower() if option.kind is Kind.FLAG else str(option.default)
    in_section = option.section is not Section.CONNECTION and option.unit == "bytes"
    return f"{text} {option.unit}".strip() if option.unit and not in_section else text


def _note(option: Option) -> str:
    choices = f" ({', '.join(option.choices)})" if len(option.choices) > 1 else ""
    return _cell(option.note + choices)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
