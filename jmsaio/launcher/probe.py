"""Check ports: which are free, and whether a broker on one is ready."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping

from jmsaio.launcher.errors import PortTakenError

#: Maximum seconds for one check.
PROBE_TIMEOUT = 5.0
_HOST = "127.0.0.1"
_REFUSED = (401, 403)


def free_port() -> int:
    """Return a port that nothing listens on right now, chosen by the system."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def free_ports(count: int) -> list[int]:
    """Return `count` different free ports."""
    ports: list[int] = []
    while len(ports) < count:
        port = free_port()
        if port not in ports:
            ports.append(port)
    return ports


def require_free(port: int, purpose: str) -> None:
    """Check that nothing listens on the port.

    Raises:
        PortTakenError: the port is in use; the message names it and its purpose.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that just ended don't count
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            reason = f"port {port} ({purpose}) can't be used: {error.strerror}; stop what uses it, or choose another"
            raise PortTakenError(reason, port) from error


def is_ready(web_port: int, headers: Mapping[str, str] | None = None) -> bool:
    """Return whether the broker serves its default namespace; clients find their topics only then.

    A broker with authentication counts as ready when it refuses a call without credentials.

    Args:
        web_port: port of the broker's REST interface on this machine.
        headers: credentials, for a broker with authentication.
    """
    connection = http.client.HTTPConnection(_HOST, web_port, timeout=PROBE_TIMEOUT)
    try:
        connection.request("GET", "/admin/v2/namespaces/public", headers=dict(headers or {}))
        response = connection.getresponse()
        if not headers and response.status in _REFUSED:
            return True
        return response.status == 200 and "public/default" in json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
