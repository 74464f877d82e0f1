"""Ports and readiness, seen from outside."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from jmsaio.launcher.errors import PortTakenError
from jmsaio.launcher.probe import free_ports, is_ready, require_free

Serve = Callable[[int, bytes], AbstractContextManager[int]]


@pytest.fixture
def serve() -> Serve:
    """``with serve(status, body) as port``: a server that gives one answer to everything."""

    @contextmanager
    def run(status: int, body: bytes) -> Iterator[int]:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            yield server.server_address[1]
            server.shutdown()
            thread.join()

    return run


def test_free_ports_differ() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        require_free(port, "test")


def test_a_taken_port_is_named_with_its_purpose() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"port {port} \(for clients\) can't be used") as caught:
            require_free(port, "for clients")
        assert caught.value.port == port
    require_free(port, "for clients")


@pytest.mark.parametrize(
    ("status", "body", "ready"),
    [
        (200, b'["public/default"]', True),
        (200, b'["public/functions"]', False),
        (200, b"<html>", False),
        (200, b"\xff\xfe", False),
        (500, b'["public/default"]', False),
        (401, b"Authentication required", True),
        (403, b"Forbidden", True),
    ],
)
def test_ready_means_the_default_namespace_is_served(serve: Serve, status: int, body: bytes, ready: bool) -> None:
    with serve(status, body) as port:
        assert is_ready(port) is ready


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_not_ready(serve: Serve, status: int) -> None:
    """While it starts, a broker may refuse the credentials that it accepts a moment later."""
    with serve(status, b"") as port:
        assert not is_ready(port, {"Authorization": "Bearer x"})


def test_nothing_there_is_not_ready() -> None:
    (port,) = free_ports(1)
    assert not is_ready(port)


def test_something_else_on_the_port_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"SSH-2.0-nope\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        assert not is_ready(server.getsockname()[1])
        thread.join()
