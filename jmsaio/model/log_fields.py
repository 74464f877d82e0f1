"""The fields of log records, which a formatter or a handler can read as their attributes.

.. code-block:: python

    class OneLine(logging.Formatter):
        def format(self, record):
            fields = {name: value for name, value in vars(record).items() if name.startswith("jms_")}
            return json.dumps({"logger": record.name, "text": record.getMessage(), **fields})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsaio.model.destinations import Destination

#: Each field with its meaning. A record has those that are known where it is logged.
FIELDS: Final[Mapping[str, str]] = {
    "jms_connection": "id of the connection: its client id, if it has one, and a unique text",
    "jms_session": "number of the session in its connection, from 1",
    "jms_destination": "name of the queue or topic; in records of `jmsaio.transport`, the full name of Pulsar's topic",
    "jms_subscription": "name of the subscription at the broker",
    "jms_message_id": "JMSMessageID, or Pulsar's id of a message that can't be read",
    "jms_attempt": "JMSXDeliveryCount: 1 at the first delivery",
}


def log_fields(
    *,
    connection: str | None = None,
    session: int | None = None,
    destination: Destination | str | None = None,
    subscription: str | None = None,
    message_id: str | None = None,
    attempt: int | None = None,
) -> dict[str, str | int]:
    """Return what is known of a log record's circumstances, as the ``extra`` of a logger's methods."""
    given = {
        "jms_connection": connection,
        "jms_session": session,
        "jms_destination": destination.name if isinstance(destination, Destination) else destination,
        "jms_subscription": subscription,
        "jms_message_id": message_id,
        "jms_attempt": attempt,
    }
    return {name: value for name, value in given.items() if value is not None}
