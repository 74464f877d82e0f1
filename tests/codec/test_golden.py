"""The codec against what the real Java client writes: the same bytes out, the same values in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jmsaio.codec import encode
from jmsaio.model.messages.object_message import JavaObject
from jmsaio.model.wire import DELIVERY_COUNT
from tests.codec import golden_files
from tests.codec.cases import Described, all_cases, value
from tests.codec.described import build, describe, describe_value, value_of
from tests.java.golden import write_golden_files
from tests.kit.records import Record, decode
from tests.support.broker import TestBroker
from tests.support.java import class_path

CASES = golden_files.cases()
DIRECT = [case for case in CASES if "forward" not in case and case["name"] != "object-list"]
KINDS = sorted({case["message"]["kind"] for case in DIRECT})


def case_named(name: str) -> Described:
    """One case."""
    return next(case for case in CASES if case["name"] == name)


def test_the_files_have_every_case() -> None:
    wanted = [case for _, cases in sorted(all_cases().items()) for case in cases]
    assert [{key: case[key] for key in case if key != "record"} for case in CASES] == json.loads(json.dumps(wanted))
    assert len(CASES) > 430


def check_encode(case: Described) -> None:
    """Byte for byte, apart from maps of several entries, whose order in Java is that of its hash table."""
    found = golden_files.normalised(encode(build(case["message"]), golden_files.stamp(case)))
    wanted = case["record"]
    if case["message"]["kind"] == "map" and len(case["message"]["body"]) > 1:
        found.pop("payload", None), found.pop("sha256", None)
        wanted = {key: wanted[key] for key in wanted if key not in ("payload", "sha256")}
    assert found == wanted


def check_decode(case: Described) -> None:
    record = golden_files.received(case)
    if record is None:  # too long for the file: what Java wrote is what `encode` writes, as `check_encode` shows
        record = Record.sent(encode(build(case["message"]), golden_files.stamp(case)))
    message = decode(record, None)
    found = describe(message)
    sent = case["message"]
    assert found["kind"] == sent["kind"]
    assert canonical_body(sent["kind"], found["body"]) == canonical_body(sent["kind"], expanded_body(sent))
    assert {name: content for name, content in found["properties"].items() if name != DELIVERY_COUNT} == {
        name: describe_value(value_of(content)) for name, content in sent.get("properties", {}).items()
    }
    for name, content in sent.get("headers", {}).items():
        if name == "reply_to":
            content = content | {"name": content["name"].removeprefix("persistent://public/default/")}
        assert found["headers"][name] == content
    options = case.get("options", {})
    assert found["headers"]["priority"] == options.get("priority", 4)
    assert found["headers"]["delivery_mode"] == options.get("delivery_mode", 2)
    assert found["headers"]["expiration"] == golden_files.stamp(case).expiration
    assert found["headers"]["timestamp"] == (0 if "disable_timestamp" in options else golden_files.T)
    assert found["headers"]["delivery_time"] == golden_files.T


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", [check_encode, check_decode])
def test_each_case_is_written_and_read_as_java_does(check: Callable[[Described], None], kind: str) -> None:
    """Every case of a golden file is tried, and those that fail are named with what is wrong."""
    cases = [case for case in DIRECT if case["message"]["kind"] == kind]
    assert cases
    wrong: list[AssertionError] = []
    for case in cases:
        try:
            check(case)
        except Exception as error:
            wrong.append(AssertionError(f"{case['name']}: {type(error).__name__}: {error}"))
    if wrong:
        raise ExceptionGroup(f"golden files, {kind}", wrong)


@pytest.mark.parametrize("name", ["map-all", "map-40", "map-long-keys"])
def test_a_map_read_and_written_again_is_the_same(name: str) -> None:
    case = case_named(name)
    record = golden_files.received(case)
    assert record is not None
    again = encode(decode(record, None), golden_files.stamp(case))
    assert again.payload == record.payload


def test_a_java_object_arrives_unread_and_leaves_as_it_came() -> None:
    case = case_named("object-list")
    record = golden_files.received(case)
    assert record is not None and record.payload is not None
    message = decode(record, None)
    assert message.get_body(object) == JavaObject("java.util.ArrayList", record.payload)
    assert encode(message, golden_files.stamp(case)).payload == record.payload


def test_a_message_forwarded_by_java() -> None:
    """It carries properties of the first delivery, an empty key, and the first message id."""
    record = golden_files.received(case_named("forwarded"))
    assert record is not None
    record.redelivery_count = 1
    message = decode(record, None)
    assert (message.jms_correlation_id, message.jms_type, message.jms_message_id) == ("two", "first", "<first id>")
    assert message.properties == {"JMSXGroupSeq": "0", "JMSXDeliveryCount": 2}
    assert message.jms_redelivered
    again = encode(message, golden_files.stamp(case_named("header")))
    assert again.properties["JMSXGroupSeq"] == "0" and "JMSXDeliveryCount" not in again.properties
    assert again.key is None


@pytest.mark.broker
@pytest.mark.java
@pytest.mark.timeout(300)
def test_java_still_writes_the_same(
    pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path, tmp_path: Path
) -> None:
    write_golden_files(
        class_path(java_classpath, java_peer_dir), pulsar_broker.service_url, pulsar_broker.web_service_url, tmp_path
    )
    committed = {path.name: path.read_text().splitlines() for path in golden_files.FOLDER.glob("*.json")}
    assert {path.name: path.read_text().splitlines() for path in tmp_path.glob("*.json")} == committed


def canonical_body(kind: str, body: Any) -> Any:
    """A body that can be compared: maps without order."""
    return sorted(body, key=json.dumps) if kind == "map" else body


def expanded_body(message: Described) -> Any:
    """The body that a receiver describes: what was written to a bytes message is one byte array, long texts in full."""
    body, kind = message["body"], message["kind"]
    if kind == "bytes":
        return [describe_value(build(message)._body())]
    if kind == "header":
        return []
    if kind == "map":
        return [[value("string", value_of(name)), describe_value(value_of(content))] for name, content in body]
    if kind == "stream":
        return [describe_value(value_of(content)) for content in body]
    return describe_value(value_of(body))
