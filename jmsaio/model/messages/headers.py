"""The JMS headers of a message (Jakarta Messaging 3.1, 3.4 Message header fields)."""

from __future__ import annotations

import attrs

from jmsaio.model.destinations import Destination


@attrs.define
class Headers:
    """Header fields. Times are milliseconds since the epoch, 0 for none.

    Attributes:
        destination: JMSDestination.
        delivery_mode: JMSDeliveryMode, 1 non-persistent or 2 persistent.
        message_id: JMSMessageID.
        timestamp: JMSTimestamp.
        expiration: JMSExpiration.
        delivery_time: JMSDeliveryTime.
        priority: JMSPriority, 0 to 9.
        correlation_id: JMSCorrelationID as it was set.
        reply_to: JMSReplyTo.
        type: JMSType.
        redelivered: JMSRedelivered.
    """

    destination: Destination | None = None
    delivery_mode: int = 2
    message_id: str | None = None
    timestamp: int = 0
    expiration: int = 0
    delivery_time: int = 0
    priority: int = 4
    correlation_id: str | bytes | None = None
    reply_to: Destination | None = None
    type: str | None = None
    redelivered: bool = False
