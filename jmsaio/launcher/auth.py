"""Token authentication of a local broker: the key, the tokens and the settings of ``StartOptions.auth``.

Secrets are stored in files that only the user can read (mode 0600), in the folder ``auth`` of the broker's state
directory. Settings, command lines and logs contain only the paths of these files.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import tenacity

from jmsaio.launcher.errors import StartError
from jmsaio.launcher.settings import parse_settings

#: Role with all permissions.
ADMIN = "admin"
#: Role allowed to send and receive in the namespace public/default.
APP = "app"
#: What it is allowed to do, by namespace.
_RIGHTS = {"public/default": ["produce", "consume"], "pulsar/system": ["consume"]}
#: Role without permissions.
GUEST = "guest"

#: All roles.
ROLES = (ADMIN, APP, GUEST)

_KEY = "secret.key"
_ALGORITHM = b'{"alg":"HS256"}'
_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
_GRANT_TIMEOUT = 30.0  # seconds
_MISSING, _PAUSE = 404, 0.1  # status, and seconds


def prepare(home: Path) -> dict[str, str]:
    """Create the missing key and tokens in a state directory; return the broker settings that use them."""
    folder = home / "auth"
    folder.mkdir(mode=0o700, exist_ok=True)
    key_path = folder / _KEY
    if not key_path.exists():
        _write(key_path, os.urandom(32))
    key = key_path.read_bytes()
    for role in ROLES:
        _write(token_file(home, role), sign(role, key).encode())
    return {
        "authenticationEnabled": "true",
        "authenticationProviders": _PROVIDER,
        "authorizationEnabled": "true",
        "superUserRoles": ADMIN,
        "tokenSecretKey": key_path.as_uri(),
        "brokerClientAuthenticationPlugin": _PLUGIN,
        "brokerClientAuthenticationParameters": token_file(home, ADMIN).as_uri(),
    }


def _write(path: Path, content: bytes) -> None:
    """Write a secret atomically into a file that no other user can ever read."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    part.replace(path)


def token_file(home: Path, role: str) -> Path:
    return home / "auth" / f"{role}.token"


def sign(role: str, key: bytes, expires: float | None = None) -> str:
    """Create a token (JWT, HS256) for a role; ``expires`` is in seconds since the epoch."""
    claims: dict[str, object] = {"sub": role} if expires is None else {"sub": role, "exp": int(expires)}
    text = f"{_encode(_ALGORITHM)}.{_encode(json.dumps(claims).encode())}"
    return f"{text}.{_encode(hmac.digest(key, text.encode(), 'sha256'))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def headers(home: Path) -> dict[str, str]:
    """Return the HTTP headers for REST calls to a state directory's broker: its own client's token, if it has one."""
    try:
        settings = parse_settings((home / "standalone.conf").read_text(encoding="utf-8"))
        given = settings.get("brokerClientAuthenticationParameters", "")
        if settings.get("brokerClientAuthenticationPlugin") not in (_PLUGIN, "token") or not given:
            return {}
        if given.startswith("file:"):
            given = Path("/" + unquote(given.removeprefix("file:")).lstrip("/")).read_text(encoding="utf-8").strip()
    except OSError:  # no settings yet, or no such token file: the call is made without a token and refused
        return {}
    return {"Authorization": f"Bearer {given.removeprefix('token:')}"}


def grant(web_port: int, shown: Mapping[str, str]) -> None:
    """Give the role `APP` its rights; ``shown`` are the headers of a superuser. Raises StartError."""
    retry = tenacity.Retrying(
        # The broker creates a namespace after its start.
        retry=tenacity.retry_if_result(lambda answer: answer[0] == _MISSING),
        wait=tenacity.wait_fixed(_PAUSE),
        stop=tenacity.stop_after_delay(_GRANT_TIMEOUT),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    try:
        for namespace, actions in _RIGHTS.items():
            path = f"/admin/v2/namespaces/{namespace}/permissions/{APP}"
            typed = {**shown, "Content-Type": "application/json"}
            status, _ = retry(call, web_port, path, typed, _GRANT_TIMEOUT, json.dumps(actions))
            if status >= 300:
                raise StartError(f"role {APP} got no rights in {namespace}: status {status}")
    except (OSError, http.client.HTTPException) as error:
        raise StartError(f"role {APP} got no rights: {error}") from error


def call(
    web_port: int, path: str, headers: Mapping[str, str], timeout: float, body: str | None = None
) -> tuple[int, bytes]:  # fmt: skip
    """Call the REST interface on this machine: POST with a body, else GET; return the status and the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", web_port, timeout=timeout)
    try:
        connection.request("GET" if body is None else "POST", path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
