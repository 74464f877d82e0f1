"""The brokers that tests run on, and a client on them; `tests.conftest` offers all of this to every test.

A test that needs ``url`` or anything made with it runs on the embedded broker and, where there is one, on a real one.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager

import attrs
import httpx
import pytest

import jmsaio
from jmsaio.testing import FaultProxy, embedded_broker
from tests.kit.tiers import runs_over_wire
from tests.support.broker import NEVER_KILLED, LaunchedBroker, TestBroker, external_broker
from tests.support.issuer import Issuer
from tests.support.secure import OAuthBroker, SecureBroker
from tests.support.workers import shared_folder

#: Fixtures that need a real broker.
BROKER_FIXTURES = frozenset({"pulsar_broker", "own_broker", "secure_broker", "oauth_broker"})


@pytest.fixture(scope="session")
def pulsar_broker(pytestconfig: pytest.Config) -> TestBroker:
    """The real broker of the whole run and all its processes: use topic names of your own, and leave it running.

    With ``JMSAIO_TEST_SERVICE_URL`` and ``JMSAIO_TEST_WEB_URL`` in the environment it is that broker, which tests can
    neither stop nor kill.
    """
    external = external_broker()
    if external is not None:
        return external
    broker = LaunchedBroker(shared_folder(pytestconfig) / "shared-broker", memory="1g", settings=NEVER_KILLED)
    broker.share()
    return broker  # its end comes with the end of the run: another process may need it still


@pytest.fixture(scope="session")
def secure_broker(pytestconfig: pytest.Config) -> SecureBroker:
    """The real broker with authentication, TLS and authorisation of the whole run and all its processes."""
    broker = SecureBroker(shared_folder(pytestconfig) / "secure-broker")
    broker.share()
    return broker


@pytest.fixture(scope="session")
def oauth_broker(pytestconfig: pytest.Config) -> OAuthBroker:
    """The real broker that takes the tokens of an `issuer`, of the whole run and all its processes."""
    broker = OAuthBroker(shared_folder(pytestconfig) / "oauth-broker")
    broker.share()
    return broker


@pytest.fixture
def issuer(oauth_broker: OAuthBroker) -> Iterator[Issuer]:
    """An OAuth 2.0 server whose tokens `oauth_broker` takes."""
    with Issuer(oauth_broker.key) as issuer:
        yield issuer


@pytest.fixture(scope="session")
def _second_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchedBroker]:
    """The broker behind `own_broker`, started at first need."""
    broker = LaunchedBroker(tmp_path_factory.mktemp("own-broker"), memory="512m")
    yield broker
    broker.kill()


@pytest.fixture
def own_broker(_second_broker: LaunchedBroker) -> TestBroker:
    """A second real broker that the test may restart, kill or freeze; it runs again when the next test begins."""
    _second_broker.start()
    return _second_broker


def each_kind_of_broker(metafunc: pytest.Metafunc) -> None:
    """Run a test on both kinds of broker, unless it says that Pulsar can't keep what it shows; some over wire, too.

    One that needs transactions of the broker runs over wire instead of pulsar-client, which has none; with ``--wire``
    all do.

    With ``-m fast``, which has no test on a real broker, those are not even made: there are more than a thousand.
    """
    if "broker_kind" in metafunc.fixturenames:
        kinds: list[object] = ["memory"]
        config, marked = metafunc.config, metafunc.definition.get_closest_marker
        if config.option.markexpr != "fast" and marked("not_on_pulsar") is None:
            native = config.option.wire or marked("not_emulated") is not None
            kinds.append(pytest.param("wire" if native else "pulsar", marks=pytest.mark.broker))
            if not native and runs_over_wire(metafunc.definition.path):
                kinds.append(pytest.param("wire", marks=[pytest.mark.broker, pytest.mark.slow]))
        metafunc.parametrize("broker_kind", kinds)


@pytest.fixture(scope="session")
def small_url(pulsar_broker: TestBroker) -> str:
    """The real broker with a namespace of this process, for tests whose calls look through all of its topics."""
    namespace = f"public/{uuid.uuid4().hex[:12]}"
    httpx.put(f"{pulsar_broker.web_service_url}/admin/v2/namespaces/{namespace}", timeout=30).raise_for_status()
    return f"{pulsar_broker.url}&jms.systemNamespace={namespace}"


@pytest.fixture
def url(broker_kind: str, request: pytest.FixtureRequest) -> str:
    """The broker that a test runs on; with the mark ``small_namespace`` also a namespace with few topics."""
    if broker_kind == "memory":
        return f"memory://{uuid.uuid4()}"
    if request.node.get_closest_marker("small_namespace") is not None:
        found: str = request.getfixturevalue("small_url")
    else:
        found = request.getfixturevalue("pulsar_broker").url
    return f"{found}&transport=wire" if broker_kind == "wire" else found


@pytest.fixture
def name() -> Callable[[str], str]:
    """Gives names of destinations, subscriptions and clients that no other test has."""
    tail = uuid.uuid4().hex[:12]
    return lambda stem: f"{stem}-{tail}"


@pytest.fixture
async def connection(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A started connection."""
    async with jmsaio.connect(url) as connection:
        yield connection


@pytest.fixture
async def session(connection: jmsaio.Connection) -> AsyncIterator[jmsaio.Session]:
    """A session in AUTO mode."""
    async with connection.create_session() as session:
        yield session


@attrs.frozen
class Disturbed:
    """A broker that can't be reached inside of ``with outage():``."""

    url: str
    outage: Callable[[], AbstractContextManager[None]]


@pytest.fixture
async def disturbed(broker_kind: str, request: pytest.FixtureRequest) -> AsyncIterator[Disturbed]:
    """A broker of each kind whose connections break when the test wants it."""
    if broker_kind == "memory":
        with embedded_broker() as broker:
            yield Disturbed(broker.url, broker.faults.outage)
        return
    pulsar = request.getfixturevalue("pulsar_broker")
    async with FaultProxy.of(pulsar.service_url) as proxy:
        yield Disturbed(f"{proxy.url}?webServiceUrl={pulsar.web_service_url}", proxy.outage)
