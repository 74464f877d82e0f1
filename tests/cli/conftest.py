"""An embedded broker inside the test's own process, for the working parts of send, receive and browse."""

import uuid
from typing import Any

import pytest


@pytest.fixture
def config() -> dict[str, Any]:
    """Configuration of an embedded broker that no other test has."""
    return {"brokerServiceUrl": f"memory://{uuid.uuid4()}", "close_timeout": "5"}
