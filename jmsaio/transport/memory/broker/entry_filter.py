"""Emulation of Starlight's filter plugin by the embedded broker: selectors only, the plugin's default mode."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from jmsaio.codec.headers import header
from jmsaio.errors import InvalidSelectorError
from jmsaio.selector import Selector
from jmsaio.selector.agreement import plugin_selector
from jmsaio.transport.base import FILTERING, FORCE_DROP, REJECT_ACTION, SELECTOR
from jmsaio.transport.memory.broker.partition import StoredRecord

#: Seconds until a rescheduled record is offered again (``dispatcherEntryFilterRescheduledMessageDelay``).
RESCHEDULED = 1.0


class Verdict(enum.Enum):
    """Decision about a record that is about to be sent to a consumer."""

    ACCEPT = "it is sent"
    REJECT = "it is removed from the subscription"
    RESCHEDULE = "it is offered again later, perhaps to another consumer"


def judge(record: StoredRecord, metadata: Mapping[str, str], properties: Mapping[str, str]) -> Verdict:
    common = properties.get(SELECTOR, "") if properties.get(FILTERING) == "true" else ""
    own = metadata.get(SELECTOR, "") if common or metadata.get(FILTERING) == "true" else ""
    if not common and not own:
        return Verdict.ACCEPT
    try:
        if common and not _matches(common, record):
            return Verdict.REJECT
        if not own or _matches(own, record):
            return Verdict.ACCEPT
    except InvalidSelectorError:
        return Verdict.RESCHEDULE
    drops = metadata.get(REJECT_ACTION) == "drop" or metadata.get(FORCE_DROP) == "true"
    return Verdict.REJECT if drops else Verdict.RESCHEDULE


def _matches(text: str, record: StoredRecord) -> bool:
    """Return whether a selector is TRUE, by the rules of JMS even if the plugin evaluates it differently."""
    matches_record = plugin_selector(text).matches_record or Selector(text).matches_record
    return matches_record(record, header) is True


def check_playable(properties: Mapping[str, str]) -> None:
    """Raise InvalidSelectorError for the selector of a subscription that only the plugin can evaluate."""
    text = properties.get(SELECTOR, "")
    try:
        selector = plugin_selector(text)
    except InvalidSelectorError:
        return  # no selector, or one that the plugin can't parse: it is stored, and delivers nothing
    if selector.matches_record is None:
        try:
            Selector(text)
        except InvalidSelectorError as error:
            reason = f"the embedded broker evaluates the selectors of subscriptions by the rules of JMS: {error}"
            raise InvalidSelectorError(reason, text=text, column=error.column) from error
