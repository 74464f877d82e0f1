"""Collects facts about a broker over its protocol and its REST interface, without changing the broker.

To check the rights to send and receive, the client opens a producer and a reader of a non-persistent topic, which
stores nothing, or of a given topic. To check the right to administer the namespace, it requests the deletion of a topic
that does not exist, once the REST interface is shown to be of the broker's cluster.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Protocol

import anyio
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import AdminError, JMSError, JMSSecurityError, NotFoundError, OperationTimeoutError
from jmsaio.model.topic_names import PROBE_TOPIC
from jmsaio.transport.base import ReaderOptions, SenderOptions, StartPosition, Transport
from jmsaio.transport.pulsar.admin import RestAdmin
from jmsaio.transport.pulsar.admin.answers import NO_TRANSACTIONS, understanding
from jmsaio.transport.pulsar.admin.paths import topic_path
from jmsaio.transport.pulsar.admin.same_cluster import SameCluster

#: Maximum seconds of one call, and of all calls for one fact.
_CALL, _LIMIT = 10.0, 20.0
_AT_REST = ("settings", "policies", "transactions", "administer", "skew")


class _Connected(Transport, Protocol):
    """A transport to a Pulsar broker."""

    same_cluster: SameCluster


#: Connects, as ``jmsaio.transport.pulsar.open_transport``.
Open = Callable[[Configuration], Awaitable[_Connected]]


async def collect_facts(config: Configuration, topic: str | None, connect: Open) -> dict[str, Any]:
    """Collect all facts, concurrently once ``connect`` has opened a transport. Takes a maximum of 50 s."""
    limit = min(config.operation_timeout, _CALL)
    config = attrs.evolve(config, operation_timeout=limit, connect_timeout=min(config.connect_timeout, limit))
    found: dict[str, Any] = {}
    transport = None
    admin = RestAdmin(config) if config.use_pulsar_admin else None
    try:
        transport = await _connect(config, connect, found)
        works: dict[str, Awaitable[object]] = {}
        if transport is not None:
            works["anonymous"] = _accepts_anyone(config, connect)
            works["produce"] = _may_produce(transport, config, topic)
            works["consume"] = _may_consume(transport, config, topic)
            if admin is not None:
                works["same cluster"] = transport.same_cluster.is_seen(topic, partial(admin.consumers, "statistics"))
        if admin is not None:
            settings = "/admin/v2/brokers/configuration/runtime"
            namespace = f"/admin/v2/namespaces/{config.system_namespace}"
            works["version"] = _version(admin, found)
            works["settings"] = _read(admin, settings, "settings of the broker (a superuser)")
            works["policies"] = _read(admin, namespace, "policies of the namespace (an administrator of its tenant)")
            works["transactions"] = _has_transactions(admin)
        async with anyio.create_task_group() as group:
            for name, work in works.items():
                group.start_soon(_note, found, name, work)
        if admin is not None and found.get("same cluster") is True:  # another cluster is asked to delete nothing
            await _note(found, "administer", _may_administer(admin, config.system_namespace))
    finally:
        with anyio.CancelScope(shield=True):
            if transport is not None:
                await transport.aclose(_CALL)
            if admin is not None:
                await admin.aclose()
    _explain(config, found)
    return found


async def _connect(config: Configuration, connect: Open, found: dict[str, Any]) -> _Connected | None:
    found["connected"] = None
    try:
        return await connect(config)
    except JMSError as error:
        if isinstance(error.__cause__, ImportError):  # the client is not installed
            raise
        found["connected"] = error
        return None


async def _note(found: dict[str, Any], name: str, work: Awaitable[object]) -> None:
    try:
        with anyio.fail_after(_LIMIT):
            found[name] = await work
    except TimeoutError:
        found[name] = OperationTimeoutError(f"no answer within {_LIMIT:g} s")
    except JMSError as error:
        found[name] = error


def _explain(config: Configuration, found: dict[str, Any]) -> None:
    """Add the reason for each unknown fact, and for those that could belong to another cluster."""
    rest = JMSError("jms.usePulsarAdmin=false") if not config.use_pulsar_admin else None
    for name in ("anonymous", "produce", "consume", "same cluster"):
        found.setdefault(name, JMSError("no connection to the broker"))
    version, same = found.setdefault("version", rest), found["same cluster"]
    if rest is None and isinstance(version, JMSError):
        rest = JMSError("the REST interface can't be used")
    elif rest is None and same is not True and not (config.web_service_named and isinstance(same, JMSError)):
        rest = JMSError(f"{config.web_service_url} is not shown to be of this broker's cluster")
    unproved = f"not tried: {config.web_service_url} is not shown to be of this broker's cluster"
    missing = isinstance(found.get("policies"), NotFoundError)
    found.setdefault("administer", False if missing else JMSError(unproved))
    if rest is not None:
        found.update(dict.fromkeys(_AT_REST, rest))
    elif isinstance(found["policies"], NotFoundError):
        found["policies"] = None


async def _accepts_anyone(config: Configuration, connect: Open) -> bool:
    without = attrs.evolve(
        config, auth_plugin=None, auth_params=None, tls_certificate_file_path=None, tls_key_file_path=None
    )
    try:
        transport = await connect(without)
    except JMSSecurityError:
        return False
    await transport.aclose(_CALL)
    return True


def _own(config: Configuration) -> str:
    return f"non-persistent://{config.system_namespace}/{PROBE_TOPIC}"


async def _may_produce(transport: _Connected, config: Configuration, topic: str | None) -> bool:
    try:
        sender = await transport.open_sender(topic or _own(config), SenderOptions(config.producer, lambda *_: None))
    except JMSSecurityError:
        return False
    await sender.aclose(_CALL)
    return True


async def _may_consume(transport: _Connected, config: Configuration, topic: str | None) -> bool:
    try:
        first = (await transport.same_cluster.partitions(topic or _own(config)))[0]
        reader = await transport.open_reader(ReaderOptions(first, config.consumer, StartPosition.LATEST))
    except JMSSecurityError:
        return False
    await reader.aclose(_CALL)
    return True


async def _may_administer(admin: RestAdmin, namespace: str) -> bool:
    path = topic_path(f"persistent://{namespace}/jmsaio-doctor-{uuid.uuid4()}")
    try:
        await admin.ask("DELETE", path, "the right to administer")
    except JMSSecurityError:
        return False
    except NotFoundError:
        return True
    raise AdminError("the broker deleted a topic that does not exist")


async def _version(admin: RestAdmin, found: dict[str, Any]) -> str:
    """Return the version; record the seconds that this machine's clock is ahead of the broker's."""
    before = time.time()
    version, date = await admin.version()
    middle = (before + time.time()) / 2
    with understanding("the broker's clock"):
        found["skew"] = middle - (parsedate_to_datetime(date).timestamp() + 0.5)  # it has whole seconds
    return version


async def _has_transactions(admin: RestAdmin) -> bool:
    try:
        await admin.ask("GET", "/admin/v3/transactions/coordinators", "transactions")
    except AdminError as error:
        if NO_TRANSACTIONS not in error.reason:
            raise
        return False
    return True


async def _read(admin: RestAdmin, path: str, right: str) -> Any:
    """Return the answer of the REST interface. Raises JMSSecurityError with the missing right."""
    try:
        text = await admin.ask("GET", path, path)
    except JMSSecurityError as error:
        raise JMSSecurityError(f"needs the right to read {right}") from error
    with understanding(path):
        return json.loads(text)
