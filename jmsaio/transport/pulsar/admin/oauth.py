"""``OAuthTokens``: tokens from an OAuth 2.0 server for a client with a secret (RFC 6749, section 4.4).

pulsar-client requests its own tokens for the binary protocol. These are for the REST interface, and for finding the
reason why the broker refuses the client.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import attrs

from jmsaio.errors import BrokerUnavailableError, ConfigurationError, JMSSecurityError
from jmsaio.model.arguments import shown
from jmsaio.transport.causes import cause_of
from jmsaio.transport.pulsar.admin.causes import distrust, trusting

if TYPE_CHECKING:
    import httpx

_METADATA = "/.well-known/openid-configuration"
_DATA = "data:application/json;base64,"
#: Maximum seconds for one request.
_TIMEOUT = 10.0
#: Share of its lifetime after which a token is replaced: it must reach the broker before it expires there.
_SHARE = 0.9
_TOO_MANY_REQUESTS = 429


@attrs.define(eq=False)
class OAuthTokens:
    """Requests tokens with client credentials, and caches each until it is about to expire.

    ``values`` are ``authParams`` (see ``with_key``): ``issuer_url``, ``private_key`` or ``client_id`` and
    ``client_secret``, and optionally ``audience`` and ``scope``. ``trusted`` is a PEM file; None: OpenSSL's own.
    """

    values: Mapping[str, str] = attrs.field(repr=False)
    trusted: str | None = None
    _kept: str = attrs.field(default="", init=False, repr=False)
    _until: float = attrs.field(default=0.0, init=False)
    _turn: anyio.Lock = attrs.field(factory=anyio.Lock, init=False, repr=False)

    async def token(self) -> str:
        """Return a valid token. Concurrent calls share one request; cancelling keeps the existing token.

        Raises BrokerUnavailableError if the server does not answer, and JMSSecurityError if it refuses the client,
        can't be trusted or answers without a token, or the private key can't be read.
        """
        async with self._turn:
            if not self._kept or anyio.current_time() >= self._until:
                self._kept, lifetime = await self._fetch()
                self._until = anyio.current_time() + lifetime * _SHARE
            return self._kept

    def forget(self) -> None:
        """Request another token next time: the broker refused this one."""
        self._kept = ""

    async def _fetch(self) -> tuple[str, float]:
        """Return a new token, and its lifetime in seconds."""
        await anyio.to_thread.run_sync(import_module, "httpx")  # importing takes 0.2 s, which must not block the loop
        import httpx

        client_id, secret = self._client()
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        form |= {name: self.values[name] for name in ("audience", "scope") if self.values.get(name)}
        issuer = self.values["issuer_url"].rstrip("/")
        no_token = JMSSecurityError(
            f"OAuth 2.0: {issuer} does not answer with a token and its expires_in; check issuerUrl in authParams"
        )
        try:
            trust = trusting(self.trusted)
        except OSError as error:
            text = f"OAuth 2.0: option tlsTrustCertsFilePath = {shown(self.trusted)}: {error.strerror or error}"
            raise JMSSecurityError(text) from error
        try:
            async with httpx.AsyncClient(verify=trust, timeout=_TIMEOUT, trust_env=False) as http:
                endpoint = str(_content(await http.get(issuer + _METADATA), secret)["token_endpoint"])
                if issuer.startswith("https:") and not endpoint.startswith("https:"):
                    raise JMSSecurityError(f"OAuth 2.0: {issuer} names the unprotected {endpoint} for its tokens")
                answer = _content(await http.post(endpoint, data=form), secret)
            token, lifetime = answer["access_token"], float(answer["expires_in"])
        except (KeyError, TypeError, ValueError, httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise no_token from error
        except (httpx.HTTPError, OSError) as error:
            reason = distrust(error, issuer)
            if reason is not None:
                raise JMSSecurityError(f"OAuth 2.0: {reason}", "AuthenticationError") from error
            raise _unavailable(issuer, f"can't be reached: {cause_of(error)}") from error
        if not isinstance(token, str) or not is_token(token) or not math.isfinite(lifetime):
            raise no_token
        return token, lifetime

    def _client(self) -> tuple[str, str]:
        """Return the client's id and secret; the file with them is read again."""
        path = self.values.get("private_key")
        if path is None:
            return self.values["client_id"], self.values["client_secret"]
        try:
            return _read_key(Path(path).read_bytes())
        except OSError as error:
            text = f"OAuth 2.0: file {path} of privateKey in authParams: {error.strerror or error}"
            raise JMSSecurityError(text) from error
        except (KeyError, TypeError, ValueError):
            text = f"OAuth 2.0: file {path} of privateKey in authParams: no JSON with client_id and client_secret"
            raise JMSSecurityError(text) from None  # the chained error would contain the file's text


def with_key(values: Mapping[str, str]) -> dict[str, str]:
    """Return parameters with a path as ``private_key``, or with the content of its ``data:`` URL instead.

    pulsar-client would log a ``data:`` URL that it can't read, and so does no error here.
    """
    read, key = dict(values), values.get("private_key", "")
    if key.startswith("file:"):
        path = key.removeprefix("file:")
        read["private_key"] = "/" + path.lstrip("/") if path.startswith("/") else path
    elif key.startswith("data:"):
        del read["private_key"]
        try:
            content = base64.b64decode(key.removeprefix(_DATA), validate=True)
            read["client_id"], read["client_secret"] = _read_key(content)
        except (KeyError, TypeError, ValueError):
            text = f"option authParams: privateKey: not {_DATA} with client_id and client_secret"
            raise ConfigurationError(text, key="authParams") from None
    return read


def is_token(text: str) -> bool:
    """Return whether a text is valid in a header: printable ASCII without blanks, and not empty."""
    return bool(text) and all("!" <= character <= "~" for character in text)


def _read_key(content: bytes) -> tuple[str, str]:
    """Return the client's id and secret from JSON. Raises KeyError, TypeError or ValueError."""
    found = json.loads(content)
    return str(found["client_id"]), str(found["client_secret"])


def _content(answer: httpx.Response, secret: str) -> Any:
    """Return the JSON of an answer, or raise the error for its status, with the server's message but not the secret."""
    url, status = answer.url, answer.status_code
    if answer.is_success:
        return answer.json()
    if status >= 500 or status == _TOO_MANY_REQUESTS:
        raise _unavailable(str(url), f"answers with status {status}; try again later")
    try:
        found = answer.json()
        words = f"{found['error']}: {found.get('error_description', '')}".replace(secret, "***")
        words = f" ({' '.join(words.split())[:300]})"
    except (KeyError, TypeError, ValueError):
        words = ""
    raise JMSSecurityError(
        f"OAuth 2.0: {url} refuses the client [{status}]{words}; check issuerUrl, the client and its secret, audience "
        "and scope in authParams"
    )


def _unavailable(url: str, why: str) -> BrokerUnavailableError:
    parts = urlsplit(url)
    return BrokerUnavailableError(
        f"no token for the broker: the OAuth 2.0 server {url} {why}", parts.hostname, parts.port
    )
