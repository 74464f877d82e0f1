"""Looks inside a connection."""

from __future__ import annotations

import jmsaio
from jmsaio.client.runtime.temporaries import Temporaries


def temporaries(connection: jmsaio.Connection) -> Temporaries:
    """The temporary destinations of a connection."""
    return connection._runtime.temporaries
