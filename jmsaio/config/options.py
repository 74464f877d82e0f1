"""Options and their lookup by name; the error for an unknown name suggests the nearest known one."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterable, Mapping

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import WIDTH, shown


class Kind(enum.Enum):
    """The kind of value of an option, which determines how its text is parsed."""

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
    """The section that an option belongs to; its value is the prefix of the written names."""

    CONNECTION = ""
    CLIENT = "client."
    PRODUCER = "producerConfig."
    CONSUMER = "consumerConfig."
    DEAD_LETTER = "consumerConfig.deadLetterPolicy."
    NACK_BACKOFF = "consumerConfig.negativeAckRedeliveryBackoff."
    ACK_TIMEOUT_BACKOFF = "consumerConfig.ackTimeoutRedeliveryBackoff."


class Status(enum.Enum):
    """The handling of a value: used, refused unless it is the default, or accepted and ignored."""

    BUILT = "yes"
    NOT_BUILT = "not yet"
    NO_EFFECT = "accepted"


#: Transports on which an option has an effect, by their names in ``jmsaio.config.schemes``.
ON_MEMORY, ON_PULSAR_CLIENT, ON_WIRE = ("memory",), ("pulsar-client",), ("wire",)
ON_PULSAR = ON_PULSAR_CLIENT + ON_WIRE
EVERYWHERE = ON_MEMORY + ON_PULSAR


@attrs.frozen
class Option:
    """An option, as declared by its field or by its row in ``jmsaio.config.unsupported_options``.

    Attributes:
        key: the name as written in a URL, a map or a file, without the section's prefix.
        default: the default in its written form, in ``unit``; None: not set.
        field: attribute of the section's class; "" if it has no field.
        unit: unit of the written value: ms, us, s, ns, bytes, or "".
        status: built, not built (refused), or accepted without an effect.
        low: minimum value, in ``unit``.
        high: maximum value of a number that is not a duration, in ``unit``; None: Java's largest int, or 1 TiB.
        choices: the values of a choice, compared case-insensitively unless ``exact``.
        exact: whether a choice is case-sensitive.
        off: written value at or below which a duration is disabled, as by every negative value; the field is then None.
            None: it can't be disabled.
        doc: a description, or the reason why it is not built or has no effect.
        transports: the transports on which it has an effect.
        refused_on: the other transports that refuse it, unless it has its default value; the rest accept it without an
            effect.
        supplied: whether its value can also be a function that returns the text.
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
    refused_on: tuple[str, ...] = ()
    supplied: bool = False

    @property
    def name(self) -> str:
        """The full written name, such as ``consumerConfig.receiverQueueSize``."""
        prefix = "" if self.section is Section.CLIENT else self.section.value
        return prefix + self.key

    @property
    def secret(self) -> bool:
        """Whether its value must not be shown."""
        return self.kind in (Kind.SECRET, Kind.MAP)  # each value of a map can be a secret

    @property
    def optional(self) -> bool:
        """Whether the field can be None."""
        return self.default is None or self.off is not None


def _no_names() -> Iterable[str]:
    return ()


class Directory:
    """Finds an option of a section by its written name or its field's name.

    Args:
        options: the section's options.
        others: returns the names of other sections, which errors can suggest for an unknown name.
    """

    def __init__(self, options: Iterable[Option], others: Callable[[], Iterable[str]] = _no_names) -> None:
        self.options = tuple(options)
        self._others = others
        self._by_key: Mapping[str, Option] = {option.key: option for option in self.options}
        self._by_field: Mapping[str, Option] = {option.field: option for option in self.options if option.field}

    def find(self, name: str, prefix: str = "") -> tuple[Option, bool]:
        """Return the option with a name, and whether the name is the field's (durations are then seconds).

        Args:
            name: a name without the section's prefix.
            prefix: the section's prefix, for the error.

        Raises:
            ConfigurationError: the name is unknown; the error suggests the nearest one.
        """
        option = self._by_key.get(name)
        if option is not None:
            return option, option.field == option.key
        option = self._by_field.get(name)
        if option is not None:
            return option, True
        whole = prefix + name
        raise ConfigurationError(f"unknown option {shown(whole)}{nearest(whole, self.names())}", key=whole)

    def names(self) -> list[str]:
        """Return all names that errors can suggest, those of this section first."""
        return [*(option.name for option in self.options), *self._by_field, *self._others()]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` with the known name nearest to ``name``, or "" if none is near."""
    found = nearest_name(name, names)
    return hint(repr(found)) if found else ""


def hint(meant: str) -> str:
    """Return the end of an error that suggests ``meant``, or "" if that is empty."""
    return f"; did you mean {meant}?" if meant else ""


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the known name nearest to ``name``, or "" if none is near.

    The part after the last dot counts first, so that a name in the wrong section finds the right one.
    """
    best, found = (_NEAR, 0.0), ""
    if len(name) > WIDTH:  # comparing takes time by its square
        return found
    for known in names:
        score = (_likeness(_last(name), _last(known)), _likeness(name, known))
        if score > best:
            best, found = score, known
    return found


#: Minimum similarity of a suggested name, from 0 (nothing in common) to 1 (equal).
_NEAR = 0.6


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()
