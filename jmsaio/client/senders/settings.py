"""The settings of a MessageProducer, checked (Jakarta Messaging 3.1, 7.4 Setting message delivery options)."""

from __future__ import annotations

import enum
import logging
from typing import Any, Final

import attrs

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.arguments import check_flag, check_int, shown, wrong_type
from jmsaio.model.destinations import Destination
from jmsaio.model.durations import Duration, milliseconds
from jmsaio.model.modes import DeliveryMode

_log = logging.getLogger("jmsaio")

_DELIVERY_MODES: Final = "DeliveryMode.PERSISTENT or DeliveryMode.NON_PERSISTENT"


@attrs.frozen
class Target:
    """A destination, resolved for a sender.

    Attributes:
        destination: the JMS destination.
        topic: full Pulsar topic.
        queue_subscription: the subscription created with the first sender to a queue; None for a topic.
    """

    destination: Destination
    topic: str
    queue_subscription: str | None


@attrs.define(eq=False, kw_only=True)
class Settings:
    """The settings of a producer; each raises ObjectClosedError once the producer is closed."""

    _target: Target | None
    _delivery_mode: int = 2
    _priority: int = 4
    _time_to_live: int = 0
    _delivery_delay: int = 0
    _disable_message_id: bool = False
    _disable_message_timestamp: bool = False
    _closed: bool = False
    # Values derived from the settings, dropped when one changes.
    _kept: Any = None
    _kept_varied: dict[Any, Any] = attrs.field(factory=dict, init=False)  # for sends with their own options

    @property
    def destination(self) -> Destination | None:
        """The destination, or None if each send names one. Raises ObjectClosedError, as all settings do."""
        self._check_open()
        return None if self._target is None else self._target.destination

    def get_destination(self) -> Destination | None:
        """Return ``destination``."""
        return self.destination

    @property
    def delivery_mode(self) -> DeliveryMode:
        """The default delivery mode, initially PERSISTENT. Any value but 1 or 2 raises IllegalArgumentError."""
        self._check_open()
        return DeliveryMode(self._delivery_mode)

    @delivery_mode.setter
    def delivery_mode(self, mode: DeliveryMode) -> None:
        self._check_open()
        self._delivery_mode = checked_mode(mode)
        self._drop_kept()

    def get_delivery_mode(self) -> DeliveryMode:
        """Return ``delivery_mode``."""
        return self.delivery_mode

    @property
    def priority(self) -> int:
        """The default priority, initially 4. A value outside of 0 to 9 raises IllegalArgumentError."""
        self._check_open()
        return self._priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self._check_open()
        self._priority = checked_priority(priority)
        self._drop_kept()

    def get_priority(self) -> int:
        """Return ``priority``."""
        return self.priority

    @property
    def time_to_live(self) -> float:
        """The default time to live in seconds; initially 0, which means forever."""
        self._check_open()
        return self._time_to_live / 1000

    @time_to_live.setter
    def time_to_live(self, value: Duration) -> None:
        self.set_time_to_live(value)

    def get_time_to_live(self) -> float:
        """Return ``time_to_live``."""
        return self.time_to_live

    def set_time_to_live(self, value: Duration) -> None:
        """Set the default time to live, in seconds. Raises IllegalArgumentError below 0 and above 10 years."""
        self._check_open()
        self._time_to_live = milliseconds(value, "time_to_live")
        self._drop_kept()

    @property
    def delivery_delay(self) -> float:
        """The default delivery delay in seconds, initially 0."""
        self._check_open()
        return self._delivery_delay / 1000

    @delivery_delay.setter
    def delivery_delay(self, value: Duration) -> None:
        self.set_delivery_delay(value)

    def get_delivery_delay(self) -> float:
        """Return ``delivery_delay``."""
        return self.delivery_delay

    def set_delivery_delay(self, value: Duration) -> None:
        """Set the default delivery delay, in seconds. Raises IllegalArgumentError below 0 and above 10 years."""
        self._check_open()
        self._delivery_delay = milliseconds(value, "delivery_delay")
        self._drop_kept()

    def set_delivery_mode(self, mode: DeliveryMode) -> None:
        """Set ``delivery_mode``."""
        self.delivery_mode = mode

    def set_priority(self, priority: int) -> None:
        """Set ``priority``."""
        self.priority = priority

    @property
    def disable_message_id(self) -> bool:
        """Whether messages are sent without JMSMessageID; initially False."""
        self._check_open()
        return self._disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, value: bool) -> None:
        self._check_open()
        check_flag(value, "disable_message_id")
        self._disable_message_id = value
        self._drop_kept()

    def get_disable_message_id(self) -> bool:
        """Return ``disable_message_id``."""
        return self.disable_message_id

    @property
    def disable_message_timestamp(self) -> bool:
        """Whether messages are sent without JMSTimestamp; initially False."""
        self._check_open()
        return self._disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, value: bool) -> None:
        self._check_open()
        check_flag(value, "disable_message_timestamp")
        self._disable_message_timestamp = value
        self._drop_kept()

    def get_disable_message_timestamp(self) -> bool:
        """Return ``disable_message_timestamp``."""
        return self.disable_message_timestamp

    def set_disable_message_id(self, value: bool) -> None:
        """Set ``disable_message_id``."""
        self.disable_message_id = value

    def set_disable_message_timestamp(self, value: bool) -> None:
        """Set ``disable_message_timestamp``."""
        self.disable_message_timestamp = value

    def _options(
        self, delivery_mode: Any, priority: Any, time_to_live: Any, delivery_delay: Any
    ) -> tuple[int, int, int, int]:
        """Return a send's options, None meaning the producer's; durations in milliseconds. Raises as the setters."""
        return (
            self._delivery_mode if delivery_mode is None else checked_mode(delivery_mode),
            self._priority if priority is None else checked_priority(priority),
            self._time_to_live if time_to_live is None else milliseconds(time_to_live, "time_to_live"),
            self._delivery_delay if delivery_delay is None else milliseconds(delivery_delay, "delivery_delay"),
        )

    def _drop_kept(self) -> None:
        self._kept = None
        self._kept_varied.clear()

    def _check_open(self) -> None:
        """Raise ObjectClosedError once the producer is closed."""
        raise NotImplementedError


def log_left_out(what: str, error: Exception) -> None:
    """Log which part of another library's message can't be read and is therefore not sent."""
    _log.warning("%s of the message of another library can't be read and is not sent: %r", what, error)


def checked_mode(mode: DeliveryMode) -> int:
    """Return the number of a delivery mode; the number itself is accepted, too. Raises IllegalArgumentError."""
    if not isinstance(mode, DeliveryMode):
        if not isinstance(mode, int) or isinstance(mode, bool):
            raise wrong_type(mode, "delivery_mode", _DELIVERY_MODES)
        if mode not in (1, 2) or isinstance(mode, enum.Enum):
            raise IllegalArgumentError(f"delivery_mode must be {_DELIVERY_MODES}, not {shown(mode)}")
    return int(mode)


def checked_priority(priority: int) -> int:
    """Return ``priority`` if it is 0 to 9, else raise IllegalArgumentError."""
    check_int(priority, "priority", 0, 9)
    return priority
