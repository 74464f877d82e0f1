"""Exceptions (checklist.txt, group 10): what the errors themselves carry, and messages that no broker has seen.

One tree of errors serves both families of Jakarta Messaging.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import jmsaio
from tests.conformance.kit import row, tck

CORE = "core/exceptiontests/ExceptionTestIT"
RUNTIME = "core20/runtimeexceptiontests/ClientIT"

#: The error, and the methods of the checklist that make a checked one with a code and without.
CHECKED: list[tuple[type[jmsaio.JMSError], str, str]] = [
    (jmsaio.TransactionRolledBackError, "transactionRolledBackExceptionTest1", "transactionRolledBackExceptionTest2"),
    (jmsaio.TransactionInProgressError, "testTransactionInProgressException1", "testTransactionInProgressException2"),
    (jmsaio.ResourceAllocationError, "testResourceAllocationException1", "resourceAllocationExceptionTest2"),
    (jmsaio.MessageNotWriteableError, "testMessageNotWriteableException1", "testMessageNotWriteableException2"),
    (jmsaio.MessageNotReadableError, "testMessageNotReadableException1", "testMessageNotReadableException2"),
    (jmsaio.MessageFormatError, "testMessageFormatException1", "testMessageFormatException2"),
    (jmsaio.MessageEOFError, "testMessageEOFException1", "testMessageEOFException2"),
    (jmsaio.JMSSecurityError, "testJMSSecurityException1", "testJMSSecurityException2"),
    (jmsaio.JMSError, "testJMSException1", "testJMSException2"),
    (jmsaio.InvalidSelectorError, "invalidSelectorExceptionTest1", "invalidSelectorExceptionTest2"),
    (jmsaio.InvalidDestinationError, "invalidDestinationExceptionTest1", "invalidDestinationExceptionTest2"),
    (jmsaio.InvalidClientIDError, "invalidClientIDExceptionTest1", "invalidClientIDExceptionTest2"),
    (jmsaio.IllegalStateError, "illegalStateExceptionTest1", "illegalStateExceptionTest2"),
]

#: The same for the unchecked ones: the front of the methods' names, which end in 1, 2 and, with a cause, 3.
UNCHECKED: dict[type[jmsaio.JMSError], str] = {
    jmsaio.TransactionRolledBackError: "transactionRolledBack",
    jmsaio.TransactionInProgressError: "transactionInProgress",
    jmsaio.ResourceAllocationError: "resourceAllocation",
    jmsaio.MessageNotWriteableError: "messageNotWriteable",
    jmsaio.MessageFormatError: "messageFormat",
    jmsaio.JMSSecurityError: "jmsSecurity",
    jmsaio.JMSError: "jms",
    jmsaio.InvalidSelectorError: "invalidSelector",
    jmsaio.InvalidDestinationError: "invalidDestination",
    jmsaio.InvalidClientIDError: "invalidClientID",
    jmsaio.IllegalStateError: "illegalState",
}


def unchecked(number: int) -> Iterator[Any]:
    for error, front in UNCHECKED.items():
        yield row(error, key=f"{RUNTIME}.{front}RuntimeExceptionTest{number}")


@pytest.mark.parametrize("error", [*(row(it[0], key=f"{CORE}.{it[1]}") for it in CHECKED), *unchecked(1)])
def test_reason_and_code_are_kept(error: type[jmsaio.JMSError]) -> None:
    with pytest.raises(error) as caught:
        raise error("reason", "code")
    assert type(caught.value) is error
    assert (str(caught.value), caught.value.reason, caught.value.error_code) == ("reason", "reason", "code")
    assert caught.value.linked_exception is None


@pytest.mark.parametrize("error", [*(row(it[0], key=f"{CORE}.{it[2]}") for it in CHECKED), *unchecked(2)])
def test_without_code_it_is_none(error: type[jmsaio.JMSError]) -> None:
    with pytest.raises(error) as caught:
        raise error("reason")
    assert (str(caught.value), caught.value.reason, caught.value.error_code) == ("reason", "reason", None)


@pytest.mark.parametrize("error", list(unchecked(3)))
def test_reason_code_and_cause_are_kept(error: type[jmsaio.JMSError]) -> None:
    cause = RuntimeError("cause")
    with pytest.raises(error) as caught:
        raise error("reason", "code") from cause
    assert (caught.value.reason, caught.value.error_code) == ("reason", "code")
    assert caught.value.__cause__ is caught.value.linked_exception is cause


BOTH = ("core/exceptionQueue/ExceptionQueueTestsIT", "core/exceptionTopic/ExceptionTopicTestsIT")


@tck(f"{BOTH[0]}.xNullPointerExceptionQueueTest", f"{BOTH[1]}.xNullPointerExceptionTopicTest")
def test_none_is_no_object_for_a_bytes_message() -> None:
    with pytest.raises(jmsaio.NullValueError):
        jmsaio.BytesMessage().write_object(None)


@tck(f"{BOTH[0]}.xMessageFormatExceptionQTestforBytesMessage", f"{BOTH[1]}.xMessageFormatExceptionTTestforBytesMessage")
@pytest.mark.parametrize("value", [object(), jmsaio.BytesMessage(), [1, 2], {"a": 1}], ids=lambda it: type(it).__name__)
def test_a_bytes_message_takes_no_other_object(value: Any) -> None:
    with pytest.raises(jmsaio.MessageFormatError):
        jmsaio.BytesMessage().write_object(value)


BYTES_READERS = [
    "boolean", "byte", "unsigned_byte", "short", "unsigned_short", "char", "int", "long", "float", "double", "utf",
    "bytes",
]  # fmt: skip


@tck(f"{BOTH[0]}.xMessageNotReadableExceptionQueueTest", f"{BOTH[1]}.xMessageNotReadableExceptionTopicTest")
def test_what_is_being_written_can_not_be_read() -> None:
    message = jmsaio.BytesMessage()
    message.write_byte(1)
    with pytest.raises(jmsaio.MessageNotReadableError):
        message.read_byte()


@tck(f"{BOTH[0]}.xMessageNotReadableExceptionQBytesMsgTest", f"{BOTH[1]}.xMessageNotReadableExceptionTBytesMsgTest")
@pytest.mark.parametrize("kind", BYTES_READERS)
def test_no_reader_reads_a_new_bytes_message(kind: str) -> None:
    message = jmsaio.BytesMessage(bytes(16))
    with pytest.raises(jmsaio.MessageNotReadableError):
        getattr(message, f"read_{kind}")(*([bytearray(1)] if kind == "bytes" else []))
    with pytest.raises(jmsaio.MessageNotReadableError):
        message.get_body_length()
