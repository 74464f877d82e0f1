"""Refused credentials fail the driver and the tasks at once; only an outage is waited for."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StringType, StructField, StructType

from jmsaio.errors import JMSSecurityError
from jmsaio.launcher.auth import GUEST
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.readers import BatchReader, StreamReader, read_ranges
from jmsaio.spark.sending import write_batches
from tests.spark.use import send
from tests.support.issuer import Issuer
from tests.support.refusals import REFUSALS, Brokers, secrets_of
from tests.support.secure import OAuthBroker, SecureBroker

SPAN = Range("persistent://public/default/refused", Place(1, 0), Place(1, 1), ((1, 1),))
SCHEMA = StructType([StructField("text", StringType())])
ROWS = pa.schema([("text", pa.string())])


def _plan_batch(options: SourceOptions) -> object:
    return BatchReader(options, SCHEMA).partitions()


def _plan_stream(options: SourceOptions) -> object:
    reader = StreamReader(options, SCHEMA)
    try:
        return reader.initialOffset()
    finally:
        reader.stop()


def _read(options: SourceOptions) -> object:
    return list(read_ranges(options, [SPAN], ROWS))


def _write(options: SourceOptions) -> object:
    return write_batches(options, iter([pa.RecordBatch.from_pydict({"text": ["a"]})]))


_USES: dict[Callable[[SourceOptions], object], Use] = {
    _plan_batch: Use.READ, _plan_stream: Use.READ_STREAM, _read: Use.READ, _write: Use.WRITE,
}  # fmt: skip
_WRONG: dict[str, dict[str, Any]] = {
    "forged": {"key": b"x" * 32},
    "expired": {"lifetime": -60},
    "powerless": {"role": GUEST},
}
#: Ways in which a running stream is refused, and what its error says.
_LOST = {"expired": "JMSSecurityError: .*the token expired at 20", "revoked": "JMSSecurityError: .*no right to do this"}
#: Seconds that the token is good for, in which the stream starts, and that anything takes at most.
_LIFETIME, _LONG = 30.0, 120


@pytest.fixture
def brokers(secure_broker: SecureBroker, oauth_broker: OAuthBroker, issuer: Issuer) -> Brokers:
    return Brokers(secure_broker, oauth_broker, issuer)


@pytest.mark.parametrize("case", [case for case in REFUSALS if case != "no token file"])  # Spark reads it by itself
def test_planning_names_cause_and_remedy(brokers: Brokers, case: str) -> None:
    """An OAuth 2.0 server that does not answer is waited for, as a broker is."""
    refusal = REFUSALS[case]
    options = refusal.options(brokers)
    given = {name: str(value) for name, value in options.items() if name != "brokerServiceUrl"}
    given |= {"url": str(options["brokerServiceUrl"]), "queue": "refused", "allowInlineSecret": "true"}
    given["outageTimeout"] = "1h" if refusal.error is JMSSecurityError else "1s"
    with pytest.raises(refusal.error, match=refusal.words) as told:
        _plan_batch(parse_options(given, Use.READ))
    for secret in secrets_of(options):
        assert secret not in str(told.value)


@pytest.mark.parametrize("work", _USES)
@pytest.mark.parametrize("wrong", _WRONG)
def test_a_refused_token_is_an_error_at_once(
    secure_broker: SecureBroker, tmp_path: Path, work: Callable[[SourceOptions], object], wrong: str
) -> None:
    token = secure_broker.token(**_WRONG[wrong])
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    given = secure_broker.options(params=f"file:{file}") | {"queue": "refused", "outageTimeout": "1h"}
    given["url"] = given.pop("brokerServiceUrl")
    options = parse_options({name: str(value) for name, value in given.items()}, _USES[work])
    with pytest.raises(JMSSecurityError) as caught:
        work(options)
    assert token not in str(caught.value)


@pytest.mark.parametrize("how", _LOST)
def test_a_running_stream_ends_with_the_refusal_and_its_restart_goes_on(
    spark: SparkSession, secure_broker: SecureBroker, tmp_path: Path, how: str
) -> None:
    """It does not wait for the outage to end, and each message is stored once."""
    namespace, file = secure_broker.namespace(uuid.uuid4().hex[:12]), tmp_path / "token"
    queue = f"persistent://{namespace}/refused"
    file.write_text(secure_broker.token(lifetime=_LIFETIME if how == "expired" else None), encoding="utf-8")
    given = {str(name): str(value) for name, value in secure_broker.options(params=f"file:{file}").items()}
    given |= {"url": given.pop("brokerServiceUrl"), "queue": queue, "columns": "text", "outageTimeout": "1h"}
    given["startingOffsets"] = "earliest"

    def write() -> DataStreamWriter:
        writer = spark.readStream.format("jms").options(**given).load().writeStream.format("json")
        return writer.options(checkpointLocation=str(tmp_path / "checkpoint"), path=str(tmp_path / "files"))

    def stored() -> list[str]:
        return sorted(row.text for row in spark.read.schema("text STRING").json(str(tmp_path / "files")).collect())

    send(secure_broker.options(), queue, ["first"])
    query = write().trigger(processingTime="500 milliseconds").start()
    while not any(progress["numInputRows"] for progress in query.recentProgress):
        assert query.isActive, query.exception()
        time.sleep(0.2)
    if how == "revoked":
        secure_broker.allow(namespace)
    with pytest.raises(StreamingQueryException, match=_LOST[how]):
        query.awaitTermination(_LONG)
    secure_broker.allow(namespace, "produce", "consume")
    file.write_text(secure_broker.token(), encoding="utf-8")
    send(secure_broker.options(), queue, ["second"])
    assert write().trigger(availableNow=True).start().awaitTermination(_LONG)
    assert stored() == ["first", "second"]
