"""The broker that the tests of a hunt share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker import SERVICE_URL, WEB_URL, LaunchedBroker, TestBroker, external_broker


@contextmanager
def shared_broker(folder: Path) -> Iterator[TestBroker]:
    """The broker that the environment names, or one that runs as long as the context.

    Args:
        folder: where the data of a broker of its own lie.

    Raises:
        LauncherError: it can't be started, for example because Java is missing.
    """
    found = external_broker()
    if found is not None:
        yield found
        return
    broker = LaunchedBroker(folder, memory="1g")
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def variables(broker: TestBroker) -> dict[str, str]:
    """The environment variables that name a broker to tests."""
    return {SERVICE_URL: broker.service_url, WEB_URL: broker.web_service_url}
