"""What an option is, and how one is found by name. A name that no option has is refused with the nearest known one."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterable, Mapping

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
    LIST = "list"


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
    """What happens to a value: used, refused unless it is the default, or accepted whatever it is and not used."""

    BUILT = "yes"
    NOT_BUILT = "not yet"
    NO_EFFECT = "accepted"


#: Where an option has an effect: on every transport, on Pulsar's only, or on the embedded broker only.
EVERYWHERE, ON_PULSAR, ON_MEMORY = ("memory", "pulsar"), ("pulsar",), ("memory",)


@attrs.frozen
class Option:
    """One option, as the declaration of its field or its row in ``jmsaio.config.fieldless`` describes it.

    Attributes:
        key: the name as written in a URL, a map or a file, without the section's prefix.
        section: the section that it belongs to.
        kind: how its value is read.
        default: the default as it would be written, in ``unit``; None: not set.
        field: attribute of the section's class, "" where there is none.
        unit: unit of the written value: ms, us, s, ns, bytes, or "".
        status: built, not built (refused), or accepted without an effect.
        low: smallest value, in ``unit``.
        high: largest value of a number that is not a duration, in ``unit``; None: Java's largest int, or 1 TiB.
        choices: the values of a choice, compared without case unless ``exact``.
        exact: a choice must have the same case.
        off: written value at or below which a duration means "off", as every negative one then does: the field is None.
            None: it can't be switched off.
        doc: what it does, or why it is not built or has no effect.
        transports: the transports on which it has an effect.
        supplied: its value may also be a function that returns the text.
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
    doc: str = ""
    transports: tuple[str, ...] = EVERYWHERE
    supplied: bool = False

    @property
    def name(self) -> str:
        """The whole written name, such as ``consumerConfig.receiverQueueSize``."""
        prefix = "" if self.section is Section.CLIENT else self.section.value
        return prefix + self.key

    @property
    def secret(self) -> bool:
        """True when its value must not be shown."""
        return self.kind in (Kind.SECRET, Kind.MAP)  # of a map, each value may be one

    @property
    def optional(self) -> bool:
        """True when the field may be None."""
        return self.default is None or self.off is not None


def _no_names() -> Iterable[str]:
    return ()


class Directory:
    """Finds an option of one section by its written name or by its field's name.

    Args:
        options: the section's options.
        others: gives the names of other sections, which are suggested when they are nearest to an unknown name.
    """

    def __init__(self, options: Iterable[Option], others: Callable[[], Iterable[str]] = _no_names) -> None:
        self.options = tuple(options)
        self._others = others
        self._by_key: Mapping[str, Option] = {option.key: option for option in self.options}
        self._by_field: Mapping[str, Option] = {option.field: option for option in self.options if option.field}

    def find(self, name: str, prefix: str = "") -> tuple[Option, bool]:
        """The option written as ``name``, and True when the name is the field's own (durations are then seconds).

        Args:
            name: a name without the section's prefix.
            prefix: the section's prefix, for the error.

        Raises:
            ConfigurationError: no option has that name; the error suggests the nearest one.
        """
        option = self._by_key.get(name)
        if option is not None:
            return option, option.field == option.key
        option = self._by_field.get(name)
        if option is not None:
            return option, True
        whole = prefix + name
        raise ConfigurationError(f"unknown option {whole!r}{nearest(whole, self.names())}", key=whole)

    def names(self) -> list[str]:
        """All names that may be suggested: the section's first, then those of the others."""
        return [*(option.name for option in self.options), *self._by_field, *self._others()]


def nearest(name: str, names: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known name nearest to ``name``, or "" when none is near."""
    found = nearest_name(name, names)
    return hint(repr(found)) if found else ""


def hint(meant: str) -> str:
    """The end of an error that suggests ``meant``; "" suggests nothing."""
    return f"; did you mean {meant}?" if meant else ""


def nearest_name(name: str, names: Iterable[str]) -> str:
    """The known name nearest to ``name``, or "" when none is near.

    What stands behind the last dot counts first, so that a name in the wrong section finds the right one.
    """
    best, found = (_NEAR, 0.0), ""
    for known in names:
        score = (_likeness(_last(name), _last(known)), _likeness(name, known))
        if score > best:
            best, found = score, known
    return found


#: How alike two names must be for one to be suggested: 0 for nothing in common, 1 for equal.
_NEAR = 0.6


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()
