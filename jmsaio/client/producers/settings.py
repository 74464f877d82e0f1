"""The settings of a MessageProducer, checked, and the keywords of one send, for type checkers.

Jakarta Messaging 3.1, 7.4 Setting message delivery options.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

import attrs

from jmsaio.client.producers.stamper import Stamper
from jmsaio.client.producers.targets import Targets
from jmsaio.errors import ObjectClosedError
from jmsaio.model.destinations import Destination
from jmsaio.model.durations import Duration
from jmsaio.model.messages.properties import Property
from jmsaio.model.modes import DeliveryMode

if TYPE_CHECKING:
    from jmsaio.client.runtime.session import SessionRuntime


_log = logging.getLogger("jmsaio")


@attrs.define(eq=False, kw_only=True)
class ProducerSettings:
    """The settings of a producer; each raises ObjectClosedError once the producer is closed."""

    _runtime: SessionRuntime
    _targets: Targets
    _stamper: Stamper
    _closed: bool = attrs.field(default=False, init=False)

    @property
    def destination(self) -> Destination | None:
        """The destination, or None if each send names one. Raises ObjectClosedError, as all settings do."""
        self._check_open()
        return None if self._targets.own is None else self._targets.own.destination

    def get_destination(self) -> Destination | None:
        """Return ``destination``."""
        return self.destination

    @property
    def delivery_mode(self) -> DeliveryMode:
        """The default delivery mode, initially PERSISTENT. Any value but 1 or 2 raises IllegalArgumentError."""
        self._check_open()
        return DeliveryMode(self._stamper.settings.delivery_mode)

    @delivery_mode.setter
    def delivery_mode(self, mode: DeliveryMode) -> None:
        self._check_open()
        self._stamper.change(delivery_mode=mode)

    def get_delivery_mode(self) -> DeliveryMode:
        """Return ``delivery_mode``."""
        return self.delivery_mode

    @property
    def priority(self) -> int:
        """The default priority, initially 4. A value outside of 0 to 9 raises IllegalArgumentError."""
        self._check_open()
        return self._stamper.settings.priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self._check_open()
        self._stamper.change(priority=priority)

    def get_priority(self) -> int:
        """Return ``priority``."""
        return self.priority

    @property
    def time_to_live(self) -> float:
        """The default time to live in seconds; initially 0, which means forever."""
        self._check_open()
        return self._stamper.settings.time_to_live / 1000

    @time_to_live.setter
    def time_to_live(self, value: Duration) -> None:
        self.set_time_to_live(value)

    def get_time_to_live(self) -> float:
        """Return ``time_to_live``."""
        return self.time_to_live

    def set_time_to_live(self, value: Duration) -> None:
        """Set the default time to live, in seconds. Raises IllegalArgumentError below 0 and above 10 years."""
        self._check_open()
        self._stamper.change(time_to_live=value)

    @property
    def delivery_delay(self) -> float:
        """The default delivery delay in seconds, initially 0."""
        self._check_open()
        return self._stamper.settings.delivery_delay / 1000

    @delivery_delay.setter
    def delivery_delay(self, value: Duration) -> None:
        self.set_delivery_delay(value)

    def get_delivery_delay(self) -> float:
        """Return ``delivery_delay``."""
        return self.delivery_delay

    def set_delivery_delay(self, value: Duration) -> None:
        """Set the default delivery delay, in seconds. Raises IllegalArgumentError below 0 and above 10 years."""
        self._check_open()
        self._stamper.change(delivery_delay=value)

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
        return self._stamper.settings.disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, value: bool) -> None:
        self._check_open()
        self._stamper.change(disable_message_id=value)

    def get_disable_message_id(self) -> bool:
        """Return ``disable_message_id``."""
        return self.disable_message_id

    @property
    def disable_message_timestamp(self) -> bool:
        """Whether messages are sent without JMSTimestamp; initially False."""
        self._check_open()
        return self._stamper.settings.disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, value: bool) -> None:
        self._check_open()
        self._stamper.change(disable_message_timestamp=value)

    def get_disable_message_timestamp(self) -> bool:
        """Return ``disable_message_timestamp``."""
        return self.disable_message_timestamp

    def set_disable_message_id(self, value: bool) -> None:
        """Set ``disable_message_id``."""
        self.disable_message_id = value

    def set_disable_message_timestamp(self, value: bool) -> None:
        """Set ``disable_message_timestamp``."""
        self.disable_message_timestamp = value

    def _check_open(self) -> None:
        self._runtime.affinity.check_process()
        if self._closed or self._runtime.refuses():
            raise ObjectClosedError("the producer is closed; create a new one")


def log_left_out(what: str, error: Exception) -> None:
    """Log which part of another library's message can't be read and is therefore not sent."""
    _log.warning("%s of the message of another library can't be read and is not sent: %r", what, error)


class SendOptions(TypedDict, total=False):
    """Options of one message; None, or a missing key, means the producer's setting.

    Attributes:
        properties: set on the message before it is sent.
        delivery_mode: DeliveryMode.
        priority: 0 to 9.
        time_to_live: seconds, 0 forever.
        delivery_delay: seconds.
    """

    properties: Mapping[str, Property] | None
    delivery_mode: DeliveryMode | None
    priority: int | None
    time_to_live: Duration | None
    delivery_delay: Duration | None
