"""``RestAdmin`` against a small HTTP server with scripted answers, and against the real broker."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack
from urllib.parse import parse_qsl, urlsplit

import anyio
import attrs
import httpx
import pytest

import jmsaio
from jmsaio.config import FactoryOptions, load
from jmsaio.errors import (
    AdminError,
    ConfigurationError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    ObjectClosedError,
)
from jmsaio.model.schema import Schema
from jmsaio.model.wire import WireId
from jmsaio.transport.administration import OpenTransaction
from jmsaio.transport.base import Cursor, StartPosition
from jmsaio.transport.pulsar.admin import RestAdmin, rest
from jmsaio.transport.pulsar.admin.rest import ATTEMPTS, REDIRECTS, TOGETHER
from tests.support.broker import TestBroker
from tests.support.secure import SecureBroker

TOPIC = "persistent://public/default/orders"
PATH = "/admin/v2/persistent/public/default/orders"
SECRET = "s3cr3t"
#: Seconds after which a test hangs.
HANG = 30
MakeAdmin = Callable[..., RestAdmin]


@attrs.frozen
class Answer:
    """One answer. ``body`` is sent as JSON unless it is bytes; status 0 closes the connection, -1 says nothing."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = attrs.field(factory=dict)

    def encoded(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        lines = [f"HTTP/1.1 {self.status} Scripted", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body


@attrs.frozen
class Request:
    """One request that came in."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@attrs.define
class Server:
    """Gives the scripted answers in turn; the last one stands for all that follow.

    Where ``parts`` is given, the question for the number of partitions has that answer, and counts for nothing.
    """

    answers: Sequence[Answer]
    parts: int | None = None
    url: str = ""
    requests: list[Request] = attrs.field(factory=list)
    came: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):  # the client has gone
            while True:
                request = await self._request(reader)
                if self.parts is not None and (request.method, request.target) == ("GET", f"{PATH}/partitions"):
                    answer = Answer(200, {"partitions": self.parts})
                else:
                    self.requests.append(request)
                    self.came.set()
                    answer = self._answer(request)
                if answer.status == -1:
                    await reader.read()  # until the client goes
                if answer.status <= 0:
                    break
                writer.write(answer.encoded())
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):  # closed is closed
            await writer.wait_closed()

    def _answer(self, request: Request) -> Answer:
        return self.answers[min(len(self.requests), len(self.answers)) - 1]

    @staticmethod
    async def _request(reader: asyncio.StreamReader) -> Request:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Request(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))


@asynccontextmanager
async def scripted(*answers: Answer, parts: int | None = None) -> AsyncIterator[Server]:
    async with serving(Server(answers, parts)) as server:
        yield server


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Server]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()  # from Python 3.12 on, wait_closed waits for the connections that the client keeps open


@pytest.fixture
async def make_admin() -> AsyncIterator[MakeAdmin]:
    """``make_admin(url, **options)``: an admin that is closed at the end."""
    made: list[RestAdmin] = []

    def make(url: str, **options: Unpack[FactoryOptions]) -> RestAdmin:
        options["web_service_url"] = url
        made.append(RestAdmin(load("pulsar://127.0.0.1:1", **options)))
        return made[-1]

    yield make
    for admin in made:
        await admin.aclose()
    await asyncio.sleep(0)  # servers see the end of their connections


async def failure(call: Awaitable[object]) -> JMSError:
    """The error that ``call`` ends with."""
    with pytest.raises(JMSError) as caught:
        with anyio.fail_after(HANG):
            await call
    return caught.value


async def test_many_calls_take_turns(make_admin: MakeAdmin) -> None:
    """httpx searches all waiting requests whenever one ends."""
    async with scripted(Answer(-1)) as server:
        admin = make_admin(server.url)
        calls = [asyncio.ensure_future(admin.partitions(TOPIC)) for _ in range(TOGETHER + 8)]
        with anyio.fail_after(HANG):
            while len(server.requests) < TOGETHER:
                await anyio.sleep(0.01)
        await anyio.sleep(0.1)
        assert len(server.requests) == TOGETHER
        calls.pop(0).cancel()
        with anyio.fail_after(HANG):
            while len(server.requests) == TOGETHER:
                await anyio.sleep(0.01)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_calls_are_quiet_in_the_log_unless_the_http_librarys_logger_has_a_level(
    make_admin: MakeAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    """An application whose root logger shows INFO sees its own HTTP calls, and ours when it asks for them."""

    def lines() -> list[str]:
        return [record.message for record in caplog.records if record.name == "httpx"]

    logger = logging.getLogger("httpx")
    async with scripted(Answer(409, {"reason": "exists"}), parts=0) as server:
        admin = make_admin(server.url)
        with caplog.at_level(logging.INFO):
            await admin.create_topic(TOPIC)
            assert lines() == []
            async with httpx.AsyncClient(trust_env=False) as client:
                await client.get(f"{server.url}/own")
            assert len(lines()) == 1
            logger.setLevel(logging.INFO)
            try:
                await admin.create_topic(TOPIC)
            finally:
                logger.setLevel(logging.NOTSET)
            assert len(lines()) == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, AdminError), (401, JMSSecurityError), (403, JMSSecurityError), (404, NotFoundError), (405, AdminError),
        (409, AdminError), (412, AdminError), (301, AdminError), (501, AdminError),
    ],
)  # fmt: skip
async def test_a_refusal_is_raised_at_once_with_the_brokers_words(
    make_admin: MakeAdmin, status: int, kind: type[JMSError]
) -> None:
    async with scripted(Answer(status, {"reason": "because of this\nand more"})) as server:
        error = await failure(make_admin(server.url).delete_subscription(TOPIC, "s"))
    assert type(error) is kind
    assert "delete subscription s of persistent://public/default/orders" in str(error)
    assert "because of this" in str(error)
    assert "and more" not in str(error)
    assert len(server.requests) == 1
    if isinstance(error, AdminError):
        assert error.status == status


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", "Scripted"), (b"<html>\n<p>", "<html>"), (b"\xff\xfe", "status 412"), (b"[1]", "[1]"),
        (b'{"other": 1}', "other"), (b'{"reason": null}', "None"), (b"x" * 5000, "x" * 300),
    ],
)  # fmt: skip
async def test_reasons_of_any_form(make_admin: MakeAdmin, body: bytes, shown: str) -> None:
    async with scripted(Answer(412, body)) as server:
        error = await failure(make_admin(server.url).partitions(TOPIC))
    assert shown in str(error)
    assert len(str(error)) < 500


async def test_what_exists_is_not_created(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(409, {"reason": "exists"}), parts=0) as server:
        admin = make_admin(server.url)
        assert not await admin.create_topic(TOPIC)
        assert not await admin.create_topic(TOPIC, 3)
        assert not await admin.create_subscription(TOPIC, "s", StartPosition.LATEST)
        assert not await admin.create_subscription(TOPIC, "s", StartPosition.EARLIEST)
    assert [(one.method, one.target) for one in server.requests] == [
        ("PUT", PATH),
        ("PUT", f"{PATH}/partitions"),
        ("PUT", f"{PATH}/subscription/s?replicated=false"),
        ("PUT", f"{PATH}/subscription/s?replicated=false"),
    ]
    bodies = [json.loads(one.body) for one in server.requests]
    assert bodies[:2] == [{}, 3]
    assert [body["ledgerId"] for body in bodies[2:]] == [2**63 - 1, -1]


@pytest.mark.parametrize("failed", [Answer(500), Answer(503), Answer(0)])
async def test_a_repeated_attempt_finds_what_the_first_one_did(make_admin: MakeAdmin, failed: Answer) -> None:
    """An answer that says that a call failed, or none, does not say that nothing was done."""
    async with scripted(failed, Answer(409)) as server:
        assert await make_admin(server.url).create_topic(TOPIC)
    async with scripted(failed, Answer(409)) as server:
        assert await make_admin(server.url).create_topic(TOPIC, 3)
    async with scripted(failed, Answer(404), parts=0) as server:
        await make_admin(server.url).delete_topic(TOPIC)
    async with scripted(failed, Answer(404)) as server:
        await make_admin(server.url).delete_subscription(TOPIC, "s")
    async with scripted(Answer(404)) as server:
        assert isinstance(await failure(make_admin(server.url).delete_subscription(TOPIC, "s")), NotFoundError)
    assert len(server.requests) == 1


async def test_creating_in_a_missing_namespace_fails(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(404, {"reason": "Namespace not found"})) as server:
        assert isinstance(await failure(make_admin(server.url).create_topic(TOPIC)), NotFoundError)


@pytest.mark.parametrize(("partitions", "target"), [(0, PATH), (2, f"{PATH}/partitions")])
@pytest.mark.parametrize("force", [False, True])
async def test_deleting_a_topic(make_admin: MakeAdmin, partitions: int, target: str, force: bool) -> None:
    async with scripted(Answer(200, {"partitions": partitions}), Answer(204)) as server:
        await make_admin(server.url).delete_topic(TOPIC, force)
    assert server.requests[1].method == "DELETE"
    assert server.requests[1].target == f"{target}?force={str(force).lower()}&deleteSchema=true"


async def test_names_reach_the_server_encoded(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(204)) as server:
        await make_admin(server.url).delete_subscription("persistent://public/default/a/b 100%", "..")
    assert server.requests[0].target == (
        "/admin/v2/persistent/public/default/a%2Fb%20100%25/subscription/%2E%2E?force=false"
    )


async def test_no_call_is_made_for_what_is_no_name(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(204)) as server:
        admin = make_admin(server.url)
        for call in (admin.partitions("orders"), admin.topics("public"), admin.delete_subscription(TOPIC, "")):
            assert isinstance(await failure(call), InvalidDestinationError)
    assert server.requests == []


@pytest.mark.parametrize(("partitions", "sums"), [(0, {}), (2, {"perPartition": "false"})])
async def test_statistics_are_asked_for_with_exact_backlogs_and_no_more_than_is_used(
    make_admin: MakeAdmin, partitions: int, sums: dict[str, str]
) -> None:
    async with scripted(Answer(200, {"partitions": partitions}), Answer(200, {})) as server:
        await make_admin(server.url).stats(TOPIC)
    query = dict(parse_qsl(urlsplit(server.requests[-1].target).query))
    assert query == {
        "getPreciseBacklog": "true",
        "subscriptionBacklogSize": "false",
        "getEarliestTimeInBacklog": "false",
        "excludePublishers": "false",
        "excludeConsumers": "false",
        **sums,
    }


async def test_all_versions_of_a_schema(make_admin: MakeAdmin) -> None:
    """A topic without a schema has none."""
    versions = [{"version": 0, "type": "STRING"}, {"version": 1, "type": "AVRO", "data": '"int"'}]
    answers = [Answer(200, {"getSchemaResponses": versions}), Answer(404, {"reason": "no"}), Answer(200, {})]
    async with scripted(*answers) as server:
        admin = make_admin(server.url)
        assert await admin.schemas(TOPIC) == [Schema("STRING"), Schema("AVRO", '"int"')]
        assert await admin.schemas(TOPIC) == []
        assert isinstance(await failure(admin.schemas(TOPIC)), AdminError)
    assert {one.target for one in server.requests} == {"/admin/v2/schemas/public/default/orders/schemas"}


async def test_the_version_is_pulsars(make_admin: MakeAdmin) -> None:
    """What else a web server answers is an AdminError."""
    date = {"Date": "Thu, 01 Jan 1970 00:00:00 GMT"}
    answers = [Answer(200, body, date) for body in (b"4.0.7", b'"4.1.0-SNAPSHOT"\n', b"<html>", b"{}", b"")]
    async with scripted(*answers) as server:
        admin = make_admin(server.url)
        assert await admin.version() == ("4.0.7", date["Date"])
        assert await admin.version() == ("4.1.0-SNAPSHOT", date["Date"])
        for _ in range(3):
            assert "not one of Pulsar's REST interface" in str(await failure(admin.version()))


async def test_a_version_of_a_schema(make_admin: MakeAdmin) -> None:
    """What is no schema is an AdminError."""
    answers = [
        Answer(200, {"version": 3, "type": "STRING"}),
        Answer(200, {"version": 3, "type": "AVRO", "data": '"int"', "properties": {"a": "b"}}),
        Answer(200, {"version": 3, "type": "AVRO", "data": 5}),
        Answer(404, {"reason": "no"}),
    ]
    async with scripted(*answers) as server:
        admin = make_admin(server.url)
        topic = "non-persistent://public/default/a b"
        assert await admin.schema(topic, 3) == Schema("STRING")
        found = await admin.schema(topic, 3)
        assert (found.definition, found.properties) == ('"int"', {"a": "b"})
        assert isinstance(await failure(admin.schema(topic, 3)), AdminError)
        assert isinstance(await failure(admin.schema(TOPIC, 4)), NotFoundError)
    assert [one.target for one in server.requests] == [
        *["/admin/v2/schemas/public/default/a%20b/schema/3"] * 3,
        "/admin/v2/schemas/public/default/orders/schema/4",
    ]


async def test_statistics_with_fields_that_are_missing_or_null(make_admin: MakeAdmin) -> None:
    subscriptions = {"s": {"type": None, "consumers": None}, "t": {"msgBacklog": 3, "subscriptionProperties": None}}
    found = {"publishers": None, "subscriptions": subscriptions}
    async with scripted(Answer(200, {"partitions": 0}), Answer(200, found)) as server:
        stats = await make_admin(server.url).stats(TOPIC)
    assert stats.producers == 0
    assert [(one.name, one.type, one.backlog, one.consumers) for one in stats.subscriptions.values()] == [
        ("s", "None", 0, 0),
        ("t", "None", 3, 0),
    ]


@pytest.mark.parametrize(
    "body",
    [b"<html>Welcome</html>", b"{", b"\xff\xfe\xfa", b"[]", b"7", b'"x"', b"null", b"", b'{"partitions": {}}'],
)
async def test_an_answer_that_is_not_pulsars(make_admin: MakeAdmin, body: bytes) -> None:
    async with scripted(Answer(200, body)) as server:
        admin = make_admin(server.url)
        for call in (admin.partitions(TOPIC), admin.delete_topic(TOPIC), admin.stats(TOPIC)):
            error = await failure(call)
            assert type(error) is AdminError
            assert "check webServiceUrl" in str(error)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "cursors",
    [{"s": {}}, {"s": {"markDeletePosition": "x"}}, {"s": {"markDeletePosition": None}}, {"s": 1}, [1]],
)
async def test_a_cursor_that_makes_no_sense(make_admin: MakeAdmin, cursors: object) -> None:
    async with scripted(Answer(200, {"cursors": cursors})) as server:
        assert type(await failure(make_admin(server.url).cursor(TOPIC, "s"))) is AdminError


async def test_a_missing_cursor(make_admin: MakeAdmin) -> None:
    one = {"markDeletePosition": "5:-1", "individuallyDeletedMessages": None}
    async with scripted(Answer(200, {"cursors": {"a%7Eb*": one}, "lastConfirmedEntry": "5:3"})) as server:
        admin = make_admin(server.url)
        assert isinstance(await failure(admin.cursor(TOPIC, "s")), NotFoundError)
        found = await admin.cursor(TOPIC, "a~b*")
        assert found.mark_delete is None
        assert found.last == (5, 3, -1, -1)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 0])
async def test_a_failure_that_passes_is_tried_again(make_admin: MakeAdmin, status: int) -> None:
    async with scripted(Answer(status), Answer(status), Answer(200, {"partitions": 3})) as server:
        assert await make_admin(server.url).partitions(TOPIC) == 3
    assert len(server.requests) == 3


async def test_attempts_are_limited(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(503, {"reason": "busy"})) as server:
        error = await failure(make_admin(server.url).partitions(TOPIC))
    assert isinstance(error, AdminError)
    assert error.status == 503
    assert len(server.requests) == ATTEMPTS


async def test_endless_silence_is_bounded(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(-1)) as server:
        admin = make_admin(server.url, operation_timeout=0.3)
        error = await failure(admin.partitions(TOPIC))
        await admin.aclose()
    assert isinstance(error, AdminError)
    assert error.status is None
    assert f"no answer of {server.url} within 0.3 s" in str(error)


async def test_repetitions_are_bounded_as_a_whole(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(500), Answer(-1)) as server:
        admin = make_admin(server.url, operation_timeout=1.0)
        assert "within 1 s" in str(await failure(admin.partitions(TOPIC)))
        await admin.aclose()


async def test_a_cancelled_call_leaves_a_usable_client(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(-1), Answer(200, {"partitions": 1})) as server:
        admin = make_admin(server.url)
        call = asyncio.create_task(admin.partitions(TOPIC))
        await asyncio.wait_for(server.came.wait(), HANG)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await admin.partitions(TOPIC) == 1


async def test_a_refused_connection_names_the_url_and_the_options(make_admin: MakeAdmin) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        error = await failure(make_admin(url).partitions(TOPIC))
    assert isinstance(error, AdminError)
    assert error.status is None
    for words in (url, "webServiceUrl", "jms.usePulsarAdmin=false", TOPIC):
        assert words in str(error)


async def test_something_that_does_not_speak_http(make_admin: MakeAdmin) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        writer.close()
        with suppress(ConnectionError):  # the client has gone
            await writer.wait_closed()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        assert "check webServiceUrl" in str(await failure(make_admin(url).partitions(TOPIC)))


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_is_followed_with_body_and_credentials(make_admin: MakeAdmin, status: int) -> None:
    async with scripted(Answer(204)) as owner:
        moved = Answer(status, headers={"Location": f"{owner.url}{PATH}/subscription/s?authoritative=true"})
        async with scripted(moved, parts=0) as server:
            admin = make_admin(server.url, auth_plugin="token", auth_params=f"token:{SECRET}")
            assert await admin.create_subscription(TOPIC, "s", StartPosition.EARLIEST)
            await admin.aclose()
    first, second = server.requests[0], owner.requests[0]
    assert (second.method, second.body) == ("PUT", first.body)
    assert second.target == f"{PATH}/subscription/s?authoritative=true"
    assert second.headers["authorization"] == first.headers["authorization"] == f"Bearer {SECRET}"


async def test_a_relative_redirect(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(307, headers={"Location": "/other"}), Answer(200, {"partitions": 4})) as server:
        assert await make_admin(server.url).partitions(TOPIC) == 4
    assert [one.target for one in server.requests] == [f"{PATH}/partitions", "/other"]


async def test_redirects_are_limited(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(307, headers={"Location": "/again"})) as server:
        error = await failure(make_admin(server.url).partitions(TOPIC))
    assert isinstance(error, AdminError)
    assert error.status == 307
    assert len(server.requests) == REDIRECTS + 1


@pytest.mark.parametrize("location", ["ftp://h/x", "http://h:0/x", "http://[half", "http://h:port/x", "file:///etc/x"])
async def test_a_redirect_to_no_address(make_admin: MakeAdmin, location: str) -> None:
    async with scripted(Answer(307, headers={"Location": location})) as server:
        error = await failure(make_admin(server.url).partitions(TOPIC))
    assert isinstance(error, AdminError)
    assert "redirects" in str(error) or "location" in str(error)  # the HTTP library looks at it, too


async def test_a_redirect_without_an_address_is_a_refusal(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(307)) as server:
        assert "status 307" in str(await failure(make_admin(server.url).partitions(TOPIC)))


@pytest.mark.parametrize(
    ("plugin", "parameters", "header"),
    [
        (None, None, None),
        ("token", f"token:{SECRET}", f"Bearer {SECRET}"),
        ("basic", f"ann:{SECRET}", "Basic " + base64.b64encode(f"ann:{SECRET}".encode()).decode()),
    ],
)
async def test_credentials_are_sent_and_never_shown(
    make_admin: MakeAdmin, plugin: str | None, parameters: str | None, header: str | None
) -> None:
    async with scripted(Answer(401, {"reason": "no"})) as server:
        admin = make_admin(server.url, auth_plugin=plugin, auth_params=parameters)
        error = await failure(admin.partitions(TOPIC))
    assert server.requests[0].headers.get("authorization") == header
    assert SECRET not in repr(admin) + str(error) + repr(error)


async def test_a_token_file_is_read_for_each_call(make_admin: MakeAdmin, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    async with scripted(Answer(200, {"partitions": 0})) as server:
        admin = make_admin(server.url, auth_plugin="token", auth_params=f"file://{file}")
        await admin.partitions(TOPIC)
        file.write_text("second")
        await admin.partitions(TOPIC)
        file.unlink()
        assert isinstance(await failure(admin.partitions(TOPIC)), JMSSecurityError)
    assert [one.headers["authorization"] for one in server.requests] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("option", ["tls_trust_certs_file_path", "tls_certificate_file_path"])
@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_bad_certificates_are_named(
    make_admin: MakeAdmin, tmp_path: Path, option: str, content: str | None
) -> None:
    file = tmp_path / "file.pem"
    if content is not None:
        file.write_text(content)
    error = await failure(make_admin("https://127.0.0.1:1", **{option: str(file)}).partitions(TOPIC))
    assert isinstance(error, JMSSecurityError)
    assert str(file) in str(error)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8080", "pulsar://h:6650", "http://", "http://h:port", "http://h:0", "http://[::1", "http://h/?a"],
)
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="webServiceUrl") as caught:
        RestAdmin(attrs.evolve(load("pulsar://h:6650"), web_service_url=url))
    assert caught.value.key == "webServiceUrl"


def test_a_url_with_credentials_is_refused_without_showing_them() -> None:
    with pytest.raises(ConfigurationError, match="authParams") as caught:
        RestAdmin(attrs.evolve(load("pulsar://h:6650"), web_service_url=f"http://ann:{SECRET}@h:8080"))
    assert SECRET not in str(caught.value)


async def test_a_url_with_a_path(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(200, {"partitions": 0})) as server:
        await make_admin(f"{server.url}/gateway/").partitions(TOPIC)
    assert server.requests[0].target == f"/gateway{PATH}/partitions"


async def test_a_closed_admin_refuses(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(200, {"partitions": 0})) as server:
        admin = make_admin(server.url)
        await admin.partitions(TOPIC)
        await admin.aclose()
        await admin.aclose()
        assert isinstance(await failure(admin.partitions(TOPIC)), ObjectClosedError)
    assert len(server.requests) == 1
    assert repr(admin) == f"<RestAdmin {server.url}, closed>"


async def test_closing_ends_a_call_on_its_way(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(-1)) as server:
        admin = make_admin(server.url)
        call = asyncio.create_task(failure(admin.partitions(TOPIC)))
        await asyncio.wait_for(server.came.wait(), HANG)
        await admin.aclose()
        assert isinstance(await call, ObjectClosedError)
    assert len(server.requests) == 1


async def test_closing_ends_a_call_that_waits_for_its_next_attempt(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(503)) as server:
        admin = make_admin(server.url)
        call = asyncio.create_task(failure(admin.partitions(TOPIC)))
        await asyncio.wait_for(server.came.wait(), HANG)
        await admin.aclose()
        assert isinstance(await call, ObjectClosedError)
    assert admin._client is None


@pytest.fixture
def broker_admin(make_admin: MakeAdmin, pulsar_broker: TestBroker) -> RestAdmin:
    """Administration of the real broker."""
    return make_admin(pulsar_broker.web_service_url)


@pytest.fixture
def topic() -> str:
    """A full topic name that no other test has."""
    return f"persistent://public/default/admin-{uuid.uuid4()}"


@pytest.mark.broker
@pytest.mark.parametrize(
    "ending", ["", " b", "/b/c", "100%", "%2Fb", "?now#here&x=1", "größe🚀", "+:;", "/..", "/../../x", "\\b", "~*"]
)
async def test_unusual_names_on_the_broker(broker_admin: RestAdmin, topic: str, ending: str) -> None:
    topic, name = topic + ending, f"s{ending}"
    assert await broker_admin.create_topic(topic)
    if "/" not in ending:  # the broker lists those elsewhere
        assert topic in await broker_admin.topics("public/default")
    assert await broker_admin.create_subscription(topic, name, StartPosition.EARLIEST)
    assert not await broker_admin.create_subscription(topic, name, StartPosition.EARLIEST)
    assert list((await broker_admin.stats(topic)).subscriptions) == [name]
    assert isinstance(await broker_admin.cursor(topic, name), Cursor)
    await broker_admin.set_subscription_properties(topic, name, {"größe": "a/b%"})
    assert await broker_admin.subscription_properties(topic, name) == {"größe": "a/b%"}
    await broker_admin.delete_subscription(topic, name)
    await broker_admin.delete_topic(topic)
    with pytest.raises(NotFoundError):
        await broker_admin.partitions(topic)


@pytest.mark.broker
@pytest.mark.parametrize("name", [".", ".."])
async def test_deleting_a_subscription_of_dots_spares_the_topic(broker_admin: RestAdmin, topic: str, name: str) -> None:
    await broker_admin.create_topic(topic)
    with pytest.raises(NotFoundError):
        await broker_admin.delete_subscription(topic, name, force=True)
    assert await broker_admin.create_subscription(topic, name, StartPosition.LATEST)
    await broker_admin.delete_subscription(topic, name)
    assert await broker_admin.partitions(topic) == 0
    await broker_admin.delete_topic(topic)


@pytest.mark.broker
async def test_partitions_on_the_broker(broker_admin: RestAdmin, topic: str) -> None:
    assert await broker_admin.create_topic(topic, 3)
    assert not await broker_admin.create_topic(topic, 2)
    assert await broker_admin.partitions(topic) == 3
    assert await broker_admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    assert list((await broker_admin.stats(topic)).subscriptions) == ["s"]
    for index in range(3):
        assert isinstance(await broker_admin.cursor(f"{topic}-partition-{index}", "s"), Cursor)
    await broker_admin.delete_topic(topic)
    assert not [one for one in await broker_admin.topics("public/default") if one.startswith(topic)]


@pytest.mark.broker
async def test_what_is_missing_on_the_broker(broker_admin: RestAdmin, topic: str) -> None:
    missing = topic.replace("public/default", "public/no-such-namespace")
    for call in (
        broker_admin.partitions(topic),
        broker_admin.stats(topic),
        broker_admin.cursor(topic, "s"),
        broker_admin.delete_topic(topic),
        broker_admin.create_topic(missing),
        broker_admin.topics("public/no-such-namespace"),
    ):
        assert isinstance(await failure(call), NotFoundError)


@pytest.mark.broker
async def test_a_cursor_after_acknowledging_out_of_order(
    broker_admin: RestAdmin, pulsar_broker: TestBroker, topic: str
) -> None:
    """Six messages, of which 0, 1, 3 and 5 are acknowledged one by one."""
    queue = jmsaio.Queue(topic)
    url, web = pulsar_broker.service_url, pulsar_broker.web_service_url
    async with jmsaio.connect(
        url, web_service_url=web, producer={"batchingEnabled": False}, consumer={"ackReceiptEnabled": True}
    ) as connection:
        async with (
            connection.create_session(jmsaio.AcknowledgeMode.INDIVIDUAL) as session,
            session.create_consumer(queue) as consumer,
            session.create_producer(queue) as producer,
        ):
            for number in range(6):
                await producer.send(str(number))
            messages = [await consumer.receive(timeout=HANG) for _ in range(6)]
            for index in (5, 3, 0, 1):
                message = messages[index]
                assert message is not None
                await message.acknowledge()
            stats = await broker_admin.stats(topic)
            with pytest.raises(AdminError) as caught:
                await broker_admin.delete_topic(topic)
            assert caught.value.status == 412
    assert stats.producers == 1
    assert (stats.subscriptions["jms-queue"].type, stats.subscriptions["jms-queue"].consumers) == ("Shared", 1)
    with anyio.move_on_after(HANG):  # the broker moves the mark once it has stored it, after the receipts
        while (cursor := await broker_admin.cursor(topic, "jms-queue")).mark_delete is None or (
            cursor.mark_delete.entry != 1 or len(cursor.deleted) != 2
        ):
            await anyio.sleep(0.05)
    assert cursor.mark_delete is not None
    ledger, mark = cursor.mark_delete.ledger, cursor.mark_delete.entry
    assert mark == 1
    assert cursor.deleted == (((ledger, 3), (ledger, 3)), ((ledger, 5), (ledger, 5)))
    assert (await broker_admin.stats(topic)).subscriptions["jms-queue"].backlog == 2
    await broker_admin.delete_subscription(topic, "jms-queue")
    await broker_admin.delete_topic(topic)


async def test_a_subscription_whose_cursor_the_broker_did_not_reset_is_made_anew(make_admin: MakeAdmin) -> None:
    """It is at the end of the topic, and would skip what is stored."""
    reason = "Unable to find position for position specified: unable to persist readPosition for cursor reset 567:-1"
    failed = Answer(412, {"reason": reason})
    gone = Answer(404, {"reason": "none"})
    async with scripted(failed, Answer(204), failed, gone, Answer(204), parts=0) as server:
        assert await make_admin(server.url).create_subscription(TOPIC, "s", StartPosition.EARLIEST)
    assert [one.method for one in server.requests] == ["PUT", "DELETE", "PUT", "DELETE", "PUT"]
    async with scripted(*[failed, Answer(204)] * 4, parts=0) as server:
        error = await failure(make_admin(server.url).create_subscription(TOPIC, "s", StartPosition.EARLIEST))
    assert isinstance(error, AdminError) and error.status == 412
    assert [one.method for one in server.requests][-2:] == ["PUT", "DELETE"], "nothing stays that would skip messages"


async def test_a_cursor_that_was_not_reset_costs_the_other_partitions_nothing(make_admin: MakeAdmin) -> None:
    """They may have the subscription for long: that of the partition that failed is made anew, and no other."""
    failures = [Answer(412, {"reason": "unable to persist readPosition for cursor reset 567:-1"})]

    class Partitions(Server):
        def _answer(self, request: Request) -> Answer:
            if "partition-0" in request.target:
                return Answer(409, {"reason": "exists"})
            return failures.pop() if failures and request.method == "PUT" else Answer(204)

    async with serving(Partitions((), 2)) as server:
        assert await make_admin(server.url).create_subscription(TOPIC, "s", StartPosition.EARLIEST)
    deleted = [one.target for one in server.requests if one.method == "DELETE"]
    assert len(deleted) == 1 and "partition-1" in deleted[0]


async def test_a_precondition_that_fails_is_not_taken_for_what_is_there_already(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(412, {"reason": "no such policy"})) as server:
        error = await failure(make_admin(server.url).create_subscription(TOPIC, "s", StartPosition.EARLIEST))
    assert isinstance(error, AdminError)
    assert error.status == 412


INTERNAL = {
    "state": "LedgerOpened", "lastConfirmedEntry": "7:5", "currentLedgerEntries": 6, "currentLedgerSize": 60,
    "ledgers": [{"ledgerId": 7, "entries": 0, "size": 0}], "cursors": {"s": {"markDeletePosition": "7:-1"}},
}  # fmt: skip
MOVED = {**INTERNAL, "cursors": {"s": {"markDeletePosition": "7:3"}}}


async def test_advancing_goes_on_until_the_cursor_is_there(make_admin: MakeAdmin) -> None:
    """Also where the broker is still at an earlier call, which it says with the status of a place after the end."""
    busy = Answer(409, {"reason": "ongoing message expiration not finished"})
    async with scripted(
        Answer(200, INTERNAL), busy, Answer(200, INTERNAL), Answer(204), Answer(200, INTERNAL), busy, Answer(200, MOVED)
    ) as server:
        await make_admin(server.url).advance(TOPIC, "s", WireId(7, 3, -1, 2))
    look, move = f"GET {PATH}/internalStats", f"POST {PATH}/subscription/s/expireMessages"
    asked = [f"{request.method} {request.target}" for request in server.requests]
    assert asked == [look, move, look, move, look, move, look]
    body = {"ledgerId": 7, "entryId": 3, "partitionIndex": -1, "batchIndex": -1, "isExcluded": False}
    assert json.loads(server.requests[1].body) == body


async def test_a_cursor_that_is_there_is_not_moved(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(200, MOVED)) as server:
        await make_admin(server.url).advance(TOPIC, "s", WireId(7, 3))
    assert len(server.requests) == 1


async def test_advancing_is_bounded_as_a_whole(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(200, INTERNAL)) as server:
        error = await failure(make_admin(server.url, operation_timeout=0.1).advance(TOPIC, "s", WireId(7, 3)))
    assert isinstance(error, AdminError)
    assert "not reached ID:7:3:-1 within 0.1 s" in error.reason


async def test_a_refusal_to_advance_is_raised_as_it_came(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(200, INTERNAL), Answer(412, {"reason": "no"})) as server:
        error = await failure(make_admin(server.url).advance(TOPIC, "s", WireId(7, 3)))
    assert isinstance(error, AdminError)
    assert error.status == 412


STATISTICS = Answer(200, {"deduplicationStatus": "Disabled"})


async def test_a_broker_without_transactions_is_asked_once(make_admin: MakeAdmin) -> None:
    without = Answer(503, {"reason": "This Broker is not configured with transactionCoordinatorEnabled=true."})
    async with scripted(Answer(200, INTERNAL), STATISTICS, without) as server:
        log = await make_admin(server.url).log(TOPIC)
    assert len(server.requests) == 3
    assert server.requests[2].target == "/admin/v3/transactions/transactionBufferStats/public/default/orders"
    assert (log.last, log.last_readable, log.is_readable_known) == (WireId(7, 5), WireId(7, 5), True)


async def test_ledgers_are_told_in_one_call(make_admin: MakeAdmin) -> None:
    async with scripted(Answer(200, INTERNAL)) as server:
        ledgers = await make_admin(server.url).ledgers(TOPIC)
    assert len(server.requests) == 1
    assert [(each.id, each.entries) for each in ledgers] == [(7, 6)]


async def test_a_broker_that_is_busy_is_asked_again_for_its_transactions(make_admin: MakeAdmin) -> None:
    buffer = Answer(200, {"state": "Ready", "maxReadPosition": "7:2"})
    async with scripted(Answer(200, INTERNAL), STATISTICS, Answer(503, {"reason": "not served"}), buffer) as server:
        log = await make_admin(server.url).log(TOPIC)
    assert (log.last, log.last_readable) == (WireId(7, 5), WireId(7, 2))


async def test_a_topic_that_is_unloaded_while_its_log_is_asked_for_is_found_again(make_admin: MakeAdmin) -> None:
    """The call for its transactions is the only one that does not load it."""
    buffer = Answer(200, {"state": "Ready", "maxReadPosition": "7:2"})
    unloaded = Answer(404, {"reason": f"Topic not found {TOPIC}"})
    asked = Answer(200, INTERNAL), STATISTICS
    async with scripted(*asked, unloaded, *asked, buffer) as server:
        assert (await make_admin(server.url).log(TOPIC)).last_readable == WireId(7, 2)
    async with scripted(*asked, unloaded, unloaded) as server:
        assert isinstance(await failure(make_admin(server.url).log(TOPIC)), NotFoundError)


@pytest.mark.parametrize("status", [401, 403])
async def test_the_last_readable_entry_is_unknown_without_the_right_to_ask(make_admin: MakeAdmin, status: int) -> None:
    async with scripted(Answer(200, INTERNAL), STATISTICS, Answer(status, {"reason": "no"})) as server:
        log = await make_admin(server.url).log(TOPIC)
    assert (log.last, log.last_readable, log.is_readable_known) == (WireId(7, 5), None, False)


@pytest.mark.parametrize(
    ("known", "held"),
    [
        (
            Answer(200, {"status": "OPEN", "openTimestamp": 1_000, "timeoutAt": 60_000, "owner": "app"}),
            {"ends": 61_000, "owner": "app"},
        ),
        (Answer(404, {"reason": "The transaction with this txdID `(3,4)`not found "}), {"is_known": False}),
        (Answer(401, {"reason": "Unauthorized to see it"}), {}),
    ],
)  # fmt: skip
async def test_the_transaction_of_the_first_entry_that_waits_holds_its_topic_back(
    make_admin: MakeAdmin, known: Answer, held: dict[str, Any]
) -> None:
    buffer = Answer(200, {"state": "Ready", "maxReadPosition": "7:2"})
    bits = {"X-Pulsar-txnid-most-bits": "3", "X-Pulsar-txnid-least-bits": "4"}
    entry = Answer(200, b"", {"X-Pulsar-publish-time": "1970-01-01T00:00:02Z", **bits})
    async with scripted(Answer(200, INTERNAL), STATISTICS, buffer, entry, known) as server:
        assert await make_admin(server.url).held_back(TOPIC) == OpenTransaction(id=(3, 4), since=2_000, **held)
    assert [one.target for one in server.requests[3:]] == [
        f"{PATH}/ledger/7/entry/3", "/admin/v3/transactions/transactionMetadata/3/4",
    ]  # fmt: skip


@pytest.mark.parametrize("entry", [Answer(404), Answer(200, b"", {"X-Pulsar-publish-time": "1970-01-01T00:00:02Z"})])
async def test_an_entry_that_is_of_no_transaction_holds_nothing_back(make_admin: MakeAdmin, entry: Answer) -> None:
    """The transaction has ended between two calls."""
    buffer = Answer(200, {"state": "Ready", "maxReadPosition": "7:2"})
    async with scripted(Answer(200, INTERNAL), STATISTICS, buffer, entry) as server:
        assert await make_admin(server.url).held_back(TOPIC) is None


async def test_a_topic_that_stores_nothing_has_no_log(make_admin: MakeAdmin) -> None:
    error = await failure(make_admin("http://127.0.0.1:1").log(f"non-{TOPIC}"))
    assert isinstance(error, InvalidDestinationError)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"authParams": "garbage-token"}, "refused the credentials .401.: the token is no JSON Web Token"),
        ({"tlsTrustCertsFilePath": "stranger"}, r"https://localhost:\d+ is not trusted"),
        ({"webServiceUrl": "127.0.0.1"}, r"https://127\.0\.0\.1:\d+ is for another host"),
    ],
)
async def test_who_is_refused_learns_why(secure_broker: SecureBroker, change: dict[str, str], words: str) -> None:
    """At the first call, which is not tried again."""
    options = secure_broker.options(tls=True)
    told = {
        "tlsTrustCertsFilePath": str(secure_broker.stranger),
        "webServiceUrl": secure_broker.tls_web_url.replace("localhost", "127.0.0.1"),
    }
    admin = RestAdmin(load(options | {name: told.get(name, value) for name, value in change.items()}))
    with pytest.raises(JMSSecurityError, match=words) as caught:
        await admin.topics("public/default")
    assert "garbage-token" not in str(caught.value)
    await admin.aclose()


_FIRST_USE = """
import asyncio, sys, threading
from jmsaio.config import load
from jmsaio.transport.pulsar.admin import RestAdmin

class Finder:
    def find_spec(self, name, *_):
        if name == "httpx":
            print(name, threading.current_thread() is threading.main_thread())

async def ask():
    admin = RestAdmin(load("pulsar://localhost:6650?webServiceUrl=" + sys.argv[1]))
    print(await admin.partitions("persistent://public/default/orders"))
    await admin.aclose()

sys.meta_path.insert(0, Finder())
asyncio.run(ask())
"""


async def test_the_http_library_is_not_loaded_on_the_loops_thread() -> None:
    async with scripted(Answer(200, {"partitions": 3})) as server:
        ran = await anyio.run_process([sys.executable, "-c", _FIRST_USE, server.url])
    assert ran.stdout.decode().split() == ["httpx", "False", "3"]


async def test_a_slow_load_of_the_http_library_counts_in_the_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, loaded = threading.Event(), threading.Event()

    def load_slowly(name: str) -> object:
        loading.wait(30)
        loaded.set()
        return import_module(name)

    monkeypatch.setattr(rest, "import_module", load_slowly)
    admin = RestAdmin(load("pulsar://localhost:6650?webServiceUrl=http://127.0.0.1:9", operation_timeout=0.1))
    with pytest.raises(AdminError, match=r"no answer of http://127.0.0.1:9 within 0.1 s"):
        await admin.partitions("persistent://public/default/orders")
    assert not loaded.is_set()
    loading.set()
    await anyio.to_thread.run_sync(loaded.wait, 30)
    await admin.aclose()
