"""A small OAuth 2.0 server: issues signed tokens (JWT, RS256) for a client's secret, as Pulsar's clients want them."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs

#: The one client, and its secret.
CLIENT, SECRET = "app", "secret-of-the-client"
#: The audience that the brokers of the tests want.
AUDIENCE = "jmsaio-tests"


def make_keys(folder: Path) -> None:
    """Make ``issuer.key``, and ``issuer.pub`` for the broker."""
    key, public = folder / "issuer.key", folder / "issuer.pub"
    make = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(key)]
    publish = ["openssl", "pkey", "-in", str(key), "-pubout", "-outform", "DER", "-out", str(public)]
    for command in (make, publish):
        subprocess.run(command, check=True, capture_output=True, timeout=60)


def sign(key: Path, **claims: object) -> str:
    """A token with these claims."""
    text = f"{_encode(json.dumps({'alg': 'RS256'}).encode())}.{_encode(json.dumps(claims).encode())}"
    command = ["openssl", "dgst", "-sha256", "-sign", str(key)]
    signature = subprocess.run(command, input=text.encode(), check=True, capture_output=True, timeout=60).stdout
    return f"{text}.{_encode(signature)}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Listens on a free port of this machine, in a thread, inside ``with``.

    Args:
        key: the private key.
        certificate: of ``localhost``, with its key beside it (``.key``), for an issuer with TLS.

    Attributes:
        url: ``http://127.0.0.1:<port>`` or ``https://localhost:<port>``.
        lifetime: seconds that a token is valid, by its ``expires_in``; the broker takes it for two seconds more.
        answer: status and body for every request of a token instead of one; None: the real answer.
        issued: tokens issued so far.
        asked: the last request's form.
        agents: the User-Agent of those who got them, "" for pulsar-client.
    """

    def __init__(self, key: Path, certificate: Path | None = None) -> None:
        self._key = key
        self.lifetime = 3600
        self.answer: tuple[int, bytes] | None = None
        self.issued: list[str] = []
        self.asked: Mapping[str, str] = {}
        self.agents: list[str] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.path == "/.well-known/openid-configuration"
                self._reply(200 if known else 404, json.dumps({"token_endpoint": f"{issuer.url}/token"}).encode())

            def do_POST(self) -> None:
                given = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                status, body = issuer._issue({name: values[0] for name, values in given.items()})
                if status == 200:
                    issuer.agents.append(self.headers.get("user-agent", ""))
                self._reply(status, body)

            def _reply(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, certificate.with_suffix(".key"))
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self.url = f"https://localhost:{self._server.server_port}"

    def _issue(self, asked: Mapping[str, str]) -> tuple[int, bytes]:
        self.asked = asked
        if self.answer is not None:
            return self.answer
        if asked.get("grant_type") != "client_credentials":
            return 400, b'{"error": "unsupported_grant_type"}'
        if (asked.get("client_id"), asked.get("client_secret")) != (CLIENT, SECRET):
            return 401, b'{"error": "invalid_client", "error_description": "unknown client, or a wrong secret"}'
        claims = {"sub": CLIENT, "aud": asked.get("audience", ""), "exp": int(time.time()) + self.lifetime + 2}
        token = sign(self._key, **claims, jti=str(len(self.issued)))
        self.issued.append(token)
        return 200, json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime}).encode()

    def parameters(self, **changes: str | None) -> str:
        """``authParams`` of the plug-in ``oauth2`` for its client; None leaves one out."""
        given: dict[str, str | None] = {
            "issuerUrl": self.url, "clientId": CLIENT, "clientSecret": SECRET, "audience": AUDIENCE,
        }  # fmt: skip
        return json.dumps({name: value for name, value in (given | changes).items() if value is not None})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
