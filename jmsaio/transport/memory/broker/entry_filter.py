"""Emulation of Starlight's filter plugin by the embedded broker: selectors only, the plugin's default mode."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from jmsaio.errors import InvalidSelectorError, SelectorRuntimeError
from jmsaio.selector import Selector
from jmsaio.transport.base import DESTINATION_TYPE, FILTERING, FORCE_DROP, REJECT_ACTION, SELECTOR
from jmsaio.transport.memory.broker.partition import StoredRecord

#: Seconds until a rescheduled record is offered again (``dispatcherEntryFilterRescheduledMessageDelay``).
RESCHEDULED = 1.0


class Verdict(enum.Enum):
    """Decision about a record that is about to be sent to a consumer."""

    ACCEPT = "it is sent"
    REJECT = "it is removed from the subscription"
    RESCHEDULE = "it is offered again later, perhaps to another consumer"


def judge(record: StoredRecord, metadata: Mapping[str, str], properties: Mapping[str, str]) -> Verdict:
    """Apply the selectors of a subscription and of a consumer.

    Args:
        record: record to be sent.
    """
    common = properties.get(SELECTOR, "") if properties.get(FILTERING) == "true" else ""
    own = metadata.get(SELECTOR, "") if common or metadata.get(FILTERING) == "true" else ""
    if not common and not own:
        return Verdict.ACCEPT
    kind = "queue" if metadata.get(DESTINATION_TYPE) == "queue" else "topic"
    try:
        if common and not _matches(common, record, kind):
            return Verdict.REJECT
        if not own or _matches(own, record, kind):
            return Verdict.ACCEPT
    except InvalidSelectorError:
        return Verdict.RESCHEDULE
    except SelectorRuntimeError:
        return Verdict.REJECT
    drops = metadata.get(REJECT_ACTION) == "drop" or metadata.get(FORCE_DROP) == "true"
    return Verdict.REJECT if drops else Verdict.RESCHEDULE


def _matches(text: str, record: StoredRecord, kind: str) -> bool:
    """Return whether a selector is TRUE; JMSDestination is the only header read by the dialect."""
    found = Selector(text, "starlight").matches_record(record, lambda record, name: f"{kind}://{record.topic}")
    return found is True
