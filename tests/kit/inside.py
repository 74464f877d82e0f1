"""Looks inside a connection."""

from __future__ import annotations

import jmsaio
from jmsaio.client.temporary import Temporaries


def temporaries(connection: jmsaio.Connection) -> Temporaries:
    """The temporary destinations of a connection."""
    found = connection._runtime.temporaries
    assert isinstance(found, Temporaries)
    return found
