"""Generates the guide's tables and the keyword types of ``connect`` from the declared options.

``python .mkdocs/option_tables.py`` writes both files; tests compare them with the declarations.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable

from jmsaio.config.declaring import SectionField, directory, groups
from jmsaio.config.loading import KEYWORDS
from jmsaio.config.options import EVERYWHERE, ON_MEMORY, ON_PULSAR, SECONDS, Kind, Option, Section, Status
from jmsaio.config.sections import ConsumerConfig

#: Lines that enclose the generated part of the guide.
BEGIN = "<!-- option tables: written by python .mkdocs/option_tables.py -->"
END = "<!-- end of the option tables -->"

PACKAGE = pathlib.Path(__file__).parents[1] / "jmsaio"
GUIDE = PACKAGE / "guide" / "configuration.md"
TYPES = PACKAGE / "config" / "connect_options.py"

_TYPES_HEAD = '''\
"""The keyword options of ``connect`` and ``ConnectionFactory``, for type checkers.

Written by ``python .mkdocs/option_tables.py`` from the declared options; don't edit it by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypedDict

from jmsaio.config.sections import Backoff, ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.model.durations import Duration


class ConnectOptions(TypedDict, total=False):
    """Keyword options of ``connect``, except ``client_id``; ``jmsaio guide configuration`` describes them.

    Durations are seconds or a timedelta.
    """
'''
_FACTORY_HEAD = '''\
class FactoryOptions(ConnectOptions, total=False):
    """Keyword options of ``ConnectionFactory`` and ``load``."""
'''
#: Type of a keyword by the kind of its option; a choice is a Literal of its values.
_TYPES = {
    Kind.TEXT: "str",
    Kind.SECRET: "str",
    Kind.FLAG: "bool",
    Kind.INTEGER: "int",
    Kind.NUMBER: "float",
    Kind.DURATION: "Duration",
    Kind.MAP: "Mapping[str, str]",
}
#: The keyword that ``connect`` declares itself, in addition to the options.
_OWN_OF_CONNECT = "client_id"


def tables() -> str:
    """Write the tables of the options that work, are refused, or are accepted without an effect."""
    connection = directory(Section.CONNECTION).options
    jms = [option for option in connection if option.key.startswith("jms.")]
    ours = [option for option in connection if option.key == option.field]
    broker = [option for option in connection if option not in jms and option not in ours]
    streams = {section.value.rstrip("."): directory(section).options for section in list(Section)[1:]}
    everything = (*connection, *(option for options in streams.values() for option in options))
    parts = [
        _table("Broker, security, network", broker),
        _table("JMS", jms),
        _table("Our own", ours),
        *(_table(title, options) for title, options in streams.items()),
        _unbuilt("Refused, except values that change nothing", everything, Status.NOT_BUILT),
        _unbuilt("Accepted, without an effect here", everything, Status.NO_EFFECT),
    ]
    return "\n\n".join(parts)


def connect_options() -> str:
    """Write the module with the keyword types."""
    own: list[str] = []
    others: list[str] = []
    for name, declared in KEYWORDS.items():
        if isinstance(declared, SectionField):
            others.append(f"    {name}: {_group_type(declared)}")
        elif declared.status is Status.BUILT:
            entry = f"    {name}: {_option_type(declared)}"
            (own if name == _OWN_OF_CONNECT else others).append(entry)
    return "\n".join([_TYPES_HEAD, *others, "", "", _FACTORY_HEAD, *own, ""])


def write() -> None:
    """Write both files."""
    before, _, rest = GUIDE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    GUIDE.write_text(f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}", encoding="utf-8")
    TYPES.write_text(connect_options(), encoding="utf-8")


def _table(title: str, options: Iterable[Option]) -> str:
    lines = [f"### {title}", "", "| name | keyword | default | what it does |", "|---|---|---|---|"]
    built = [option for option in options if option.status is Status.BUILT]
    lines += [_line(option.key, option.field, _default(option), _doc(option)) for option in built]
    if title == Section.CONSUMER.value.rstrip("."):
        lines += [_line(each.key, each.field, "", _cell(each.doc)) for each in groups(ConsumerConfig).values()]
    return "\n".join(lines)


def _line(key: str, field: str, default: str, doc: str) -> str:
    keyword = f"`{field}`" if field and field != key else ""
    return f"| `{key}` | {keyword} | {default} | {doc} |"


def _unbuilt(title: str, options: Iterable[Option], status: Status) -> str:
    lines = [f"### {title}", "", "| name | why |", "|---|---|"]
    lines += [f"| `{option.name}` | {_cell(option.doc)} |" for option in options if option.status is status]
    return "\n".join(lines)


def written_default(option: Option) -> object:
    """Return an option's default in its unit, as a URL or a map has it; None if it is not set."""
    if option.default is None:
        return option.off
    if option.kind is not Kind.DURATION:
        return option.default
    assert isinstance(option.default, float)
    number = option.default * round(1 / SECONDS[option.unit])
    return int(number) if number == int(number) else number


def _default(option: Option) -> str:
    default = written_default(option)
    if default is None or default in ("", {}):
        return ""
    text = str(default).lower() if option.kind is Kind.FLAG else str(default)
    in_section = option.section is not Section.CONNECTION and option.unit == "bytes"
    return f"{text} {option.unit}".strip() if option.unit and not in_section else text


def _doc(option: Option) -> str:
    choices = f" ({', '.join(option.choices)})" if len(option.choices) > 1 else ""
    return _cell(option.doc + choices + _only_on(option))


def _only_on(option: Option) -> str:
    """Return a remark if the option has an effect only on some transports, else ""."""
    refused = ""
    if option.refused_on:
        all_others = {*option.transports, *option.refused_on} == set(EVERYWHERE)
        refused = ", refused elsewhere" if all_others else f", refused with {_place(*option.refused_on)}"
    if option.transports == EVERYWHERE:
        return ""
    if option.transports == ON_PULSAR:
        return f"; Pulsar only{refused}"
    return f"; {' and '.join(map(_place, option.transports))} only{refused}"


def _place(transport: str) -> str:
    return "embedded broker" if (transport,) == ON_MEMORY else f"transport={transport}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _choices(option: Option) -> str:
    return f"Literal[{', '.join(json.dumps(choice) for choice in option.choices)}]"


def _option_type(option: Option) -> str:
    kind = _TYPES.get(option.kind) or _choices(option)
    kind += " | Callable[[], str]" if option.supplied else ""
    return f"{kind} | None" if option.optional else kind


def _group_type(group: SectionField) -> str:
    kind = f"{group.kind.__name__} | Mapping[str, object]"
    return f"{kind} | None" if group.optional else kind


if __name__ == "__main__":
    write()
