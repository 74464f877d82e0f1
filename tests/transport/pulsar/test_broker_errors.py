"""Every error of the protocol has a meaning, in the order of its numbers; its text has the code and the words."""

from __future__ import annotations

import _pulsar
import pytest

from jmsaio.errors import NotFoundError
from jmsaio.transport.pulsar.broker_errors import BROKER_ERRORS, error_with
from tests.protocol.server_errors import ServerError

pytestmark = pytest.mark.fast
#: Codes whose names are not nearly those of the protocol.
OTHERS = {
    "MetadataError": "BrokerMetadataError", "PersistenceError": "BrokerPersistenceError",
    "ServiceNotReady": "ServiceUnitNotReady", "TooManyRequests": "TooManyLookupRequestException",
}  # fmt: skip


def test_each_number_of_the_protocol_has_its_code() -> None:
    """The codes are pulsar-client's names."""
    for code, number in zip(BROKER_ERRORS, ServerError, strict=True):
        assert code.removesuffix("Error") == OTHERS.get(number.name, number.name).removesuffix("Error")
    assert set(BROKER_ERRORS) <= set(_pulsar.Result.__members__)


def test_an_error_has_its_class_code_and_words() -> None:
    error = error_with(BROKER_ERRORS["TopicNotFound"], "open orders", "TopicNotFound", "no such topic")
    assert (type(error), error.error_code) == (NotFoundError, "TopicNotFound")
    assert str(error).startswith("open orders: the topic does not exist") and "[TopicNotFound] (no such" in str(error)
