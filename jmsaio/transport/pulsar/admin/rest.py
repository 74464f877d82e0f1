"""``RestAdmin``: ``Admin`` over Pulsar's REST interface. The HTTP library is imported by the first call."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import tenacity

from jmsaio.config import Configuration
from jmsaio.errors import (
    AdminError,
    InvalidDestinationError,
    JMSSecurityError,
    NotFoundError,
    ObjectClosedError,
)
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import partition_names, split_partition
from jmsaio.model.wire import WireId
from jmsaio.transport.administration import Activity, OpenTransaction, StoredEntry, check_partition
from jmsaio.transport.base import Cursor, Ledger, StartPosition, TopicLog, TopicStats
from jmsaio.transport.causes import cause_of
from jmsaio.transport.pulsar.admin import answers, paths
from jmsaio.transport.pulsar.admin.answers import NO_TRANSACTIONS, understanding
from jmsaio.transport.pulsar.admin.causes import distrust, missing_tls
from jmsaio.transport.pulsar.admin.credentials import Credentials, authorities, read_credentials, tls_context
from jmsaio.transport.pulsar.admin.paths import subscription_path, topic_path
from jmsaio.transport.pulsar.admin.same_cluster import Check
from jmsaio.transport.pulsar.admin.transactions import find_holder
from jmsaio.transport.subscriptions import list_partitions
from jmsaio.transport.waiting import together

if TYPE_CHECKING:
    import httpx

#: True during a call of this module, in the task that makes it.
_calling: ContextVar[bool] = ContextVar("jmsaio.rest.calling", default=False)
#: Maximum attempts for one call.
ATTEMPTS = 4
#: Calls that are made concurrently: httpx searches all waiting ones whenever one ends, so many would block the loop.
TOGETHER = 32
#: Maximum redirects: a broker redirects a call to the owner of the topic.
REDIRECTS = 5
#: Seconds between two checks of a cursor that is to move: initially, and maximum.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5
_Found = TypeVar("_Found")
_VERSION = re.compile(r"\d+\.[\w.+-]+")
_TRY_AGAIN = (500, 502, 503, 504)
_MOVED = (307, 308)
#: The broker's answer, with status 412, if it has created a subscription without resetting its cursor.
_NOT_RESET = "cursor reset"
_STATS = {
    "getPreciseBacklog": "true",
    "subscriptionBacklogSize": "false",
    "getEarliestTimeInBacklog": "false",
    "excludePublishers": "false",
    "excludeConsumers": "false",
}


class RestAdmin:
    """Implements ``Admin`` over HTTP at ``config.web_service_url``; connects at the first call.

    Every call as a whole is limited by ``operation_timeout``, retried after transient failures, and can be cancelled at
    any time. ``check`` verifies before each call that the interface belongs to the broker (``SameCluster.check``).
    Raises ConfigurationError: the credentials or the URL are invalid. (Certificates are read by the first call.)
    """

    def __init__(self, config: Configuration, check: Check | None = None) -> None:
        self._config = config
        self._check = check
        self._url = answers.base_url(config.web_service_url)
        self._credentials: Credentials | None = read_credentials(
            config.auth_plugin, config.auth_params, authorities(config)
        )
        self._client: httpx.AsyncClient | None = None
        self._turns = asyncio.Semaphore(TOGETHER)
        self._closed = False

    def __repr__(self) -> str:
        return f"<RestAdmin {self._url}{', closed' if self._closed else ''}>"

    @property
    def address(self) -> str:
        return self._url

    async def partitions(self, topic: str) -> int:
        path, what = f"{topic_path(topic)}/partitions", f"partitions of {topic}"
        return await self._get(path, what, lambda found: int(found["partitions"]))

    async def create_topic(self, topic: str, partitions: int = 0) -> bool:
        path = topic_path(topic)
        if partitions > 0:
            return await self._create(f"{path}/partitions", partitions, f"create {topic}", done=409)
        return await self._create(path, {}, f"create {topic}", done=409)

    async def delete_topic(self, topic: str, force: bool = False) -> None:
        path = topic_path(topic)
        query = {"force": str(force).lower(), "deleteSchema": "true"}
        if await self.partitions(topic) > 0:
            path = f"{path}/partitions"
        await self._call("DELETE", path, query=query, what=f"delete {topic}", done=404)

    async def terminate_topic(self, topic: str) -> None:
        ending = "/terminate/partitions" if await self.partitions(topic) > 0 else "/terminate"
        await self._call("POST", topic_path(topic) + ending, what=f"terminate {topic}")

    async def topics(self, namespace: str) -> list[str]:
        found: list[str] = []
        for domain in ("persistent", "non-persistent"):
            path, query = paths.namespace_path(domain, namespace), {"includeSystemTopic": "false"}
            found += await self._get(path, f"topics of {namespace}", list, query)
        return found

    async def stats(self, topic: str) -> TopicStats:
        path = topic_path(topic)
        if await self.partitions(topic) > 0:
            path, query = f"{path}/partitioned-stats", {"perPartition": "false", **_STATS}
        else:
            path, query = f"{path}/stats", _STATS
        return await self._get(path, f"statistics of {topic}", answers.read_stats, query)

    async def backlog(self, topic: str, subscription: str) -> int:
        what = f"backlog of subscription {subscription} of {topic}"
        count = await self.partitions(topic)
        messages = 0
        for part in partition_names(topic, count):
            found = await self._call("POST", f"{subscription_path(part, subscription)}/analyzeBacklog", what=what)
            with understanding(what):
                messages += int(found["messages"])
        return messages

    async def subscriptions(self, topic: str) -> list[str]:
        path, what = f"{topic_path(topic)}/subscriptions", f"subscriptions of {topic}"
        return await self._get(path, what, lambda found: [str(name) for name in found])

    async def activity(self, topic: str) -> Activity:
        path, what = topic_path(topic), f"activity of {topic}"
        internal = await self._call("GET", f"{path}/internalStats", what=what)
        published = None
        with understanding(what):
            kept = int(internal["numberOfEntries"])
        if kept:
            last = {"initialPosition": "latest", "messagePosition": "1"}
            message = await self._answer("GET", f"{path}/examinemessage", query=last, what=what)
            published = message.headers.get("x-pulsar-publish-time", "")
        answer = await self._answer("GET", f"{path}/stats", query=_STATS, what=what)
        with understanding(what):
            return answers.read_activity(json.loads(answer.content), internal, published, answer.headers["date"])

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        path, what = f"{topic_path(topic)}/internalStats", f"cursor of {topic}"
        return await self._get(path, what, lambda found: answers.read_cursor(found, subscription, what))

    async def log(self, topic: str) -> TopicLog:
        """Make three calls; the answers of the later two are limited to the last entry reported by the first."""
        what, buffer_path = f"log of {topic}", paths.transaction_buffer_path(topic)
        for attempt in range(ATTEMPTS):
            internal = await self._internal(topic, what)
            stats = await self._call("GET", f"{topic_path(topic)}/stats", query=_STATS, what=what)
            try:
                buffer, has_transactions = await self._transaction_buffer(buffer_path, what)
                break
            except NotFoundError:  # unloaded meanwhile, and this call alone does not load it again
                if attempt == ATTEMPTS - 1:
                    raise
                await anyio.sleep(_LONGEST_PAUSE)
        with understanding(what):
            return answers.read_log(topic, internal, stats, buffer, has_transactions)

    async def _transaction_buffer(self, path: str, what: str) -> tuple[Any, bool]:
        """Return the statistics of a topic's transactions, None without permission; and whether the broker has any."""
        try:
            return await self._call("GET", path, what=what), True
        except JMSSecurityError:
            return None, True
        except AdminError as error:
            if NO_TRANSACTIONS not in error.reason:
                raise
            return None, False

    async def held_back(self, topic: str) -> OpenTransaction | None:
        return await find_holder(self, topic)

    async def ledgers(self, topic: str) -> tuple[Ledger, ...]:
        what = f"ledgers of {topic}"
        internal = await self._internal(topic, what)
        with understanding(what):
            return tuple(Ledger(*one) for one in answers.read_ledgers(internal))

    async def entry_filters(self, topic: str) -> frozenset[str]:
        path, what = f"{topic_path(split_partition(topic)[0])}/entryFilters", f"filters of {topic}"
        return await self._get(path, what, answers.read_entry_filters, {"applied": "true"})

    async def schemas(self, topic: str) -> list[Schema]:
        try:
            found = await self._get(paths.schema_path(topic), f"schemas of {topic}", itemgetter("getSchemaResponses"))
        except NotFoundError:
            return []
        return [_schema(one) for one in found]

    async def schema(self, topic: str, version: int) -> Schema:
        return await self._get(paths.schema_path(topic, version), f"schema {version} of {topic}", _schema)

    async def entry(self, topic: str, message_id: WireId) -> StoredEntry:
        path = f"{topic_path(topic)}/ledger/{message_id.ledger}/entry/{message_id.entry}"
        what = f"entry {message_id.ledger}:{message_id.entry} of {topic}"
        answer = await self._answer("HEAD", path, what=what)
        with understanding(what):
            return answers.read_entry(answer.headers)

    async def first_since(self, topic: str, time: int) -> WireId:
        what = f"first entry of {topic} from publish time {time} ms on"
        read = itemgetter("ledgerId", "entryId", "partitionIndex")
        return WireId(*await self._get(paths.since_path(topic, time), what, read))

    async def advance(self, topic: str, subscription: str, message_id: WireId) -> None:
        """Poll the cursor until it has moved: the broker answers before, and refuses (409) during an earlier call."""
        what = f"advance subscription {subscription} of {topic}"
        path = f"{subscription_path(topic, subscription)}/expireMessages"
        body = answers.message_id_body(topic, message_id)
        pause = _FIRST_PAUSE
        try:
            with anyio.fail_after(self._config.operation_timeout):
                internal = await self._internal(topic, what)
                check_partition(topic, message_id)
                while not answers.has_advanced(internal, subscription, message_id, what):
                    try:
                        await self._call("POST", path, body=body, what=what)
                    except AdminError as error:
                        if error.status != 409:
                            raise
                    await anyio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    internal = await self._internal(topic, what)
        except TimeoutError:
            limit = self._config.operation_timeout
            raise AdminError(f"{what}: the broker has not reached {message_id} within {limit:g} s; try again") from None

    async def _internal(self, topic: str, what: str) -> Any:
        try:
            return await self._call("GET", f"{topic_path(topic)}/internalStats", what=what)
        except NotFoundError:
            if await self.partitions(topic) > 0:
                raise InvalidDestinationError(f"{what}: the topic has partitions; request them one by one") from None
            raise

    async def create_subscription(self, topic: str, name: str, position: StartPosition) -> bool:
        """Make a call for each partition: an answer for several would not say which of them failed."""
        async with paths.creating(topic, name, self._config.operation_timeout):
            parts = await list_partitions(self, topic) or [topic]
            return any(await together(self._create_subscription(part, name, position) for part in parts))

    async def _create_subscription(self, topic: str, name: str, position: StartPosition) -> bool:
        """Create a subscription of a topic without partitions, or of one partition.

        If the topic is unloaded meanwhile, the broker has created it without resetting its cursor: it is deleted,
        unless it has consumers, and recreated. After a failure, the subscription exists only if it did before.
        """
        path, what = subscription_path(topic, name), f"create subscription {name} of {topic}"
        attempts = ATTEMPTS
        while True:
            try:
                return await self._create(path, paths.start_position(position), what, {"replicated": "false"})
            except AdminError as error:
                if error.status != 412 or _NOT_RESET not in str(error):
                    raise
                with suppress(NotFoundError):
                    await self.delete_subscription(topic, name)
                attempts -= 1
                if not attempts:
                    raise

    async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
        what = f"delete subscription {name} of {topic}"
        query = {"force": str(force).lower()}
        await self._call("DELETE", subscription_path(topic, name), query=query, what=what, done=404)

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        path, what = f"{subscription_path(topic, name)}/properties", f"properties of subscription {name} of {topic}"
        return await self._get(path, what, lambda found: dict(found or {}))

    async def set_subscription_properties(self, topic: str, name: str, properties: Mapping[str, str]) -> None:
        what = f"set properties of subscription {name} of {topic}"
        await self._call("PUT", f"{subscription_path(topic, name)}/properties", body=dict(properties), what=what)

    async def version(self) -> tuple[str, str]:
        """Return the broker's version, and the ``Date`` header of the answer. The cluster is not checked."""
        what = "version of the broker"
        answer = await self._answer("GET", "/admin/v2/brokers/version", what=what, checked=False)
        with understanding(what):
            text = answer.text.strip().strip('"')
            if not _VERSION.fullmatch(text):
                raise ValueError("this is no version")
            return text, answer.headers["date"]

    async def ask(self, method: str, path: str, what: str) -> str:
        """Make any other call; return its answer's text. ``what`` describes the call in errors."""
        return (await self._answer(method, path, what=what)).text

    async def aclose(self) -> None:
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _create(
        self, path: str, body: object, what: str, query: Mapping[str, str] | None = None, done: int | None = None
    ) -> bool:  # fmt: skip
        try:
            await self._call("PUT", path, query=query, body=body, what=what, done=done)
        except AdminError as error:
            if error.status == 409:
                return False
            raise
        return True

    async def _get(
        self, path: str, what: str, read: Callable[[Any], _Found], query: Mapping[str, str] | None = None
    ) -> _Found:
        found = await self._call("GET", path, what=what, query=query)
        with understanding(what):
            return read(found)

    async def _call(self, method: str, path: str, *, what: str, **how: Any) -> Any:
        """Make a call with retries; return the decoded answer, None for an empty one. ``how`` is as for ``_answer``."""
        answer = await self._answer(method, path, what=what, **how)
        with understanding(what):
            return json.loads(answer.content) if answer.content else None

    async def _answer(
        self, method: str, path: str, *, what: str, query: Mapping[str, str] | None = None, body: object = None,
        checked: bool = True, done: int | None = None,
    ) -> httpx.Response:  # fmt: skip
        """Make a call with retries; return the raw answer. ``checked``: verify before that the cluster is the same.

        ``done`` is the status of a second attempt if the first one had its effect, although it seemed to fail.
        """
        limit = self._config.operation_timeout
        try:
            with anyio.fail_after(limit):
                if self._client is None:  # importing takes 0.2 s, which must not block the loop
                    await anyio.to_thread.run_sync(import_module, "httpx", abandon_on_cancel=True)
                if checked and self._check is not None:
                    await self._check(path, what, partial(self.consumers, what))
                return await self._repeated(method, path, query, body, what, done)
        except TimeoutError:
            raise AdminError(f"{what}: no answer of {self._url} within {limit:g} s") from None

    async def _repeated(
        self, method: str, path: str, query: Mapping[str, str] | None, body: object, what: str, done: int | None
    ) -> httpx.Response:
        import httpx

        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=2),
            retry=tenacity.retry_if_exception(_passes),
            reraise=True,
            sleep=anyio.sleep,
        )
        try:
            return await retrying(self._once, method, path, query, body, what)
        except (AdminError, NotFoundError) as error:
            status = error.status if isinstance(error, AdminError) else 404
            if status != done or retrying.statistics["attempt_number"] == 1:
                raise
            return httpx.Response(204)
        except (httpx.HTTPError, ssl.SSLError) as error:  # a TLS alert in an answer is an SSLError
            reason = distrust(error, self._url) or await missing_tls(self._url)
            if reason is not None:
                raise JMSSecurityError(f"{what}: {reason}", "AuthenticationError") from error
            raise AdminError(
                f"{what}: {self._url} can't be reached: {cause_of(error)};"
                " check webServiceUrl, or switch REST off with jms.usePulsarAdmin=false"
            ) from error

    async def owner(self, topic: str, tls: bool) -> str:
        """Return the ``host:port`` at which clients of Pulsar's protocol reach the broker of a topic or partition."""
        what, listener = f"broker of {topic}", self._config.listener_name
        query = None if listener is None else {"listenerName": listener}
        path = topic_path(topic).replace("/admin/v2", "/lookup/v2/topic", 1)
        found = await self._call("GET", path, what=what, query=query, checked=False)
        with understanding(what):
            place = urlsplit(str(found.get("brokerUrlTls" if tls else "brokerUrl") or "")).netloc
        if not place:
            raise AdminError(f"{what}: it names no address for connections {'with' if tls else 'without'} TLS", 200)
        return place

    async def consumers(self, what: str, topic: str) -> set[str]:
        """Return the names of the consumers and readers of a topic without partitions, in whatever cluster this is."""
        found = await self._call("GET", f"{topic_path(topic)}/stats", what=what, query=_STATS, checked=False)
        with understanding(what):
            return {
                consumer["consumerName"] for one in found["subscriptions"].values() for consumer in one["consumers"]
            }

    async def _once(
        self, method: str, path: str, query: Mapping[str, str] | None, body: object, what: str
    ) -> httpx.Response:
        url, credentials = self._url + path, self._credentials
        async with self._turns:
            for _ in range(REDIRECTS + 1):
                client = self._connected(what)
                headers, token = {}, ""
                calling = _calling.set(True)
                try:
                    if credentials is not None:
                        token = await credentials.token()
                        headers = credentials.headers(token)
                    answer = await client.request(method, url, params=query, json=body, headers=headers)
                finally:
                    _calling.reset(calling)
                if answer.status_code not in _MOVED or "location" not in answer.headers:
                    break
                url = answers.moved(url, answer.headers["location"], answer.status_code)
                query = None  # the new address contains it
        if answer.is_success:
            return answer
        if answer.status_code == 401 and credentials is not None and credentials.issued is not None:
            credentials.issued.forget()
        raise answers.error_of(answer.status_code, answers.reason_of(answer), what, credentials, token)

    def _connected(self, what: str) -> httpx.AsyncClient:
        if self._closed:  # checked before each request: a call might be waiting for its next attempt
            raise ObjectClosedError(f"{what}: the connection to the broker is closed")
        if self._client is None:
            import httpx

            logging.getLogger("httpx").addFilter(_wanted)  # added once, for any number of clients
            secure = self._url.startswith("https:")
            verify: ssl.SSLContext | bool = tls_context(self._config, self._credentials) if secure else False
            self._client = httpx.AsyncClient(verify=verify, timeout=self._config.operation_timeout, trust_env=False)
        return self._client


def _wanted(record: logging.LogRecord) -> bool:
    """Filter out httpx's INFO lines for calls of this module, unless its logger has a level."""
    quiet = _calling.get() and logging.getLogger("httpx").level == logging.NOTSET
    return not quiet or record.levelno > logging.INFO


def _passes(error: BaseException) -> bool:
    if isinstance(error, AdminError):
        return error.status in _TRY_AGAIN and NO_TRANSACTIONS not in error.reason
    import httpx

    return isinstance(error, httpx.TransportError) and distrust(error, "") is None


def _schema(found: Mapping[str, Any]) -> Schema:
    return Schema(found["type"], found.get("data") or "", found.get("properties") or {})
