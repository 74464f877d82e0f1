"""What an option is: its names, kind, unit, default and whether it is built; and how one is found by a written name.

The options are rows in ``jmsaio.config.table``. This module refuses unknown names with the nearest known one.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable, Mapping

import attrs

from jmsaio.errors import ConfigurationError


class Kind(enum.Enum):
    """How the written value of an option is read."""

    TEXT = "text"
    SECRET = "secret"
    FLAG = "true/false"
    INTEGER = "integer"
    NUMBER = "number"
    DURATION = "duration"
    CHOICE = "choice"
    MAP = "map"


class Section(enum.Enum):
    """Which object holds an option; the value is the prefix of its written name."""

    CONNECTION = ""
    CLIENT = "client."
    PRODUCER = "producerConfig."
    CONSUMER = "consumerConfig."
    DEAD_LETTER = "consumerConfig.deadLetterPolicy."
    NACK_BACKOFF = "consumerConfig.negativeAckRedeliveryBackoff."
    ACK_TIMEOUT_BACKOFF = "consumerConfig.ackTimeoutRedeliveryBackoff."


class Status(enum.Enum):
    """What happens to a value that differs from the default."""

    BUILT = "yes"
    NOT_BUILT = "not yet"
    NO_MEANING = "no meaning here"


@attrs.frozen
class Option:
    """One row of the table.

    Attributes:
        key: the name as written in a URL, a map or a file, with the section's prefix left out.
        section: the object that holds it.
        kind: how its value is read.
        default: the default in ``unit``, as Starlight or we have it; None: not set.
        field: attribute of the section's object, "" where there is none.
        unit: unit of the written value: ms, us, s, ns, bytes, or "".
        status: built, not built, or without a meaning here.
        low: smallest value, in ``unit``.
        high: largest value of a number that is no duration, in ``unit``; None: Java's largest int, or 1 TiB.
        choices: the values of a choice, compared without case unless ``exact``.
        exact: a choice is spelled exactly.
        off: written value at or below which a duration means "off" (the field is None), or None.
        note: what it does, or why it is not built.
    """

    key: str
    section: Section
    kind: Kind
    default: object = None
    field: str = ""
    unit: str = ""
    status: Status = Status.BUILT
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    exact: bool = False
    off: float | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """The whole written name, such as ``consumerConfig.receiverQueueSize``."""
        prefix = "" if self.section is Section.CLIENT else self.section.value
        return prefix + self.key

    @property
    def secret(self) -> bool:
        """True when its value must not be shown."""
        return self.kind in (Kind.SECRET, Kind.MAP)  # of a map, each value may be one


class Directory:
    """Finds an option of some sections by its written name or by its field's name.

    Args:
        options: the rows.
        others: names of other sections, offered when they are nearest to an unknown name.
    """

    def __init__(self, options: Iterable[Option], others: Iterable[str] = ()) -> None:
        self.options = tuple(options)
        self._others = tuple(others)
        self._by_name: Mapping[str, Option] = {option.name: option for option in self.options}
        self._by_field: Mapping[str, Option] = {
            option.field: option
            for option in self.options
            if option.field and option.section in (Section.CONNECTION, Section.CLIENT)
        }

    def find(self, name: str, value: object = None) -> tuple[Option, bool]:
        """The option written as ``name``, and True when the name is the field's own (units are then seconds).

        Raises:
            ConfigurationError: no option has that name; the text has the nearest one.
        """
        option = self._by_name.get(name)
        if option is not None:
            return option, option.field == option.key
        option = self._by_field.get(name)
        if option is not None:
            return option, True
        raise ConfigurationError(f"unknown option {name!r}{nearest(name, self.names())}", key=name)

    def names(self) -> list[str]:
        """All names to choose the nearest one from: written names, the fields' own, and those of other sections."""
        return [*self._by_name, *self._by_field, *self._others]


def nearest(name: str, names: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known name nearest to ``name``, or "" when none is near."""
    folded: dict[str, str] = {}
    for known in names:
        folded.setdefault(known.lower(), known)
        folded.setdefault(known.rpartition(".")[2].lower(), known)
    lowered = name.lower()
    candidates = difflib.get_close_matches(lowered, folded, n=1, cutoff=0.6)
    if not candidates:
        candidates = difflib.get_close_matches(lowered.rpartition(".")[2], folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[candidates[0]]!r}?" if candidates else ""
