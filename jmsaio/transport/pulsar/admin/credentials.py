"""Parsing of authPlugin and authParams, for the binary protocol and REST.

Plug-ins are token, tls, basic and oauth2, by short name or by the name of Pulsar's Java class. Parameters are JSON or
the plug-in's own text (``token:xxx``, ``file:///path``, ``tlsCertFile:a,tlsKeyFile:b``), with the syntax of Pulsar's
Java client. For tokens, they can be a function that returns one.

``OAuthTokens`` requests tokens from an OAuth 2.0 server for a client with a secret (RFC 6749, section 4.4).
pulsar-client requests its own for the binary protocol; these are for REST, and for finding the reason why the broker
refuses the client.
"""

from __future__ import annotations

import base64
import enum
import json
import math
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import BrokerUnavailableError, ConfigurationError, JMSSecurityError
from jmsaio.model.arguments import shown
from jmsaio.protocol.handshake import Identity
from jmsaio.transport.causes import cause_of
from jmsaio.transport.pulsar.admin.causes import distrust, trusting

if TYPE_CHECKING:
    import httpx


class AuthKind(enum.Enum):
    """How a client authenticates."""

    TOKEN = "token"
    TLS = "tls"
    BASIC = "basic"
    OAUTH2 = "oauth2"


_CLASSES = {
    "org.apache.pulsar.client.impl.auth.AuthenticationToken": AuthKind.TOKEN,
    "org.apache.pulsar.client.impl.auth.AuthenticationTls": AuthKind.TLS,
    "org.apache.pulsar.client.impl.auth.AuthenticationBasic": AuthKind.BASIC,
    "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2": AuthKind.OAUTH2,
}

#: Names of parameters in Java, and the names used here.
_SPELLINGS = {
    "userId": "username",
    "issuerUrl": "issuer_url",
    "privateKey": "private_key",
    "clientId": "client_id",
    "clientSecret": "client_secret",
}

_REMARKS = {
    AuthKind.TLS: "the client's certificate is unknown to the broker; check the files in authParams",
    AuthKind.BASIC: "wrong user or password; check authParams",
}

_NEEDED: dict[AuthKind, tuple[tuple[str, ...], ...]] = {
    AuthKind.TOKEN: (("token",), ("file",)),
    AuthKind.TLS: (("tlsCertFile", "tlsKeyFile"),),
    AuthKind.BASIC: (("username", "password"),),
    AuthKind.OAUTH2: (("issuer_url", "private_key"), ("issuer_url", "client_id", "client_secret")),
}


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
        """Return a valid token. Concurrent calls share one request; cancelling keeps the existing token."""
        async with self._turn:
            if not self._kept or anyio.current_time() >= self._until:
                self._kept, lifetime = await self._fetch()
                self._until = anyio.current_time() + lifetime * _SHARE
            return self._kept

    def forget(self) -> None:
        """Request another token next time: the broker refused this one."""
        self._kept = ""

    async def _fetch(self) -> tuple[str, float]:
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
    """Return parameters with a path as ``private_key``, or the content of its ``data:`` URL, which no error shows."""
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


@attrs.frozen
class Credentials:
    """Credentials of this client: parameters by name.

    ``function`` returns the token, for AuthKind.TOKEN; ``issued`` fetches tokens, for AuthKind.OAUTH2.
    """

    kind: AuthKind
    values: Mapping[str, str] = attrs.field(repr=False)
    function: Callable[[], str] | None = attrs.field(default=None, repr=False)
    issued: OAuthTokens | None = attrs.field(default=None, eq=False, repr=False)

    async def token(self) -> str:
        """Return the current token, "" for a kind without tokens. A file is read, or a function called, in a thread."""
        if self.issued is not None:
            return await self.issued.token()
        if self.function is not None or "file" in self.values:
            return await anyio.to_thread.run_sync(self.read_token, abandon_on_cancel=True)
        return self.read_token() if self.kind is AuthKind.TOKEN else ""

    def read_token(self) -> str:
        """Return the token, read again from its file or function, which can block. Raises JMSSecurityError."""
        file = self.values.get("file")
        if self.function is not None:
            place = "the function in authParams"
            try:
                token = self.function()
            except Exception as error:  # its text could contain a secret
                raise JMSSecurityError(f"{place} raised {type(error).__name__}") from error
            token = token.strip().removeprefix("token:") if isinstance(token, str) else ""
        elif file is not None:
            place = f"token file {file}"
            try:
                token = Path(file).read_bytes().decode("ascii", "replace").strip()
            except (OSError, ValueError) as error:  # ValueError: a null character in the name
                raise JMSSecurityError(f"{place}: {getattr(error, 'strerror', None) or error}") from error
        else:
            return self.values["token"]
        if not is_token(token):
            raise JMSSecurityError(f"{place}: does not hold one token" if file else f"{place} returned no token")
        return token

    def headers(self, token: str) -> dict[str, str]:
        if self.kind is AuthKind.BASIC:
            pair = f"{self.values['username']}:{self.values['password']}"
            return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode("ascii")}
        return {"Authorization": f"Bearer {token}"} if token else {}


def identity_of(credentials: Credentials | None, token: str) -> Identity:
    """Return how a client with ``token``, or with user and password, introduces itself to a broker."""
    if credentials is None:
        return Identity()
    data, values = token, credentials.values
    if credentials.kind is AuthKind.BASIC:
        data = f"{values['username']}:{values['password']}"
    method = "token" if credentials.kind is AuthKind.OAUTH2 else credentials.kind.value
    return Identity(values.get("method") or method, data.encode())


def read_credentials(
    plugin: str | None, parameters: str | Callable[[], str] | None, trusted: str | None = None
) -> Credentials | None:
    """Create the credentials from ``authPlugin`` and ``authParams``; return None without a plug-in.

    An OAuth 2.0 server's certificate is trusted by the PEM file ``trusted``. ConfigurationError shows no parameter.
    """
    if plugin is None:
        return None
    kind = _CLASSES.get(plugin)
    if kind is None:
        try:
            kind = AuthKind(plugin.lower())
        except ValueError:
            known = ", ".join(one.value for one in AuthKind)
            raise ConfigurationError(
                f"option authPlugin = {shown(plugin)}: known are {known}", key="authPlugin"
            ) from None
    if callable(parameters):
        if kind is not AuthKind.TOKEN:
            raise ConfigurationError("option authParams: a function is for authPlugin=token only", key="authParams")
        return Credentials(kind, {}, parameters)
    values = _values(kind, parameters or "")
    if kind is AuthKind.OAUTH2:
        values = with_key(values)
    if not any(all(values.get(name) for name in names) for names in _NEEDED[kind]):
        wanted = " or ".join(" and ".join(names) for names in _NEEDED[kind])
        raise ConfigurationError(f"option authParams: {kind.value} needs {wanted}", key="authParams")
    token = values.get("token")
    if kind is AuthKind.TOKEN and token is not None and not is_token(token):
        # An HTTP library would refuse it with a message that contains it.
        raise ConfigurationError("option authParams: the token has a blank or a character beyond ASCII", "authParams")
    if kind is AuthKind.OAUTH2:
        return Credentials(kind, values, issued=OAuthTokens(values, trusted))
    return Credentials(kind, values)


def flaw(credentials: Credentials | None, token: str) -> str:
    """Return the likely cause of refused credentials, and the remedy, without a secret; ``token`` can be ""."""
    if credentials is None:
        return "none are given; set authPlugin and authParams"
    file = credentials.values.get("file")
    if credentials.kind in _REMARKS:
        return _REMARKS[credentials.kind]
    if credentials.issued is not None:
        remedy = "check issuerUrl, audience and scope in authParams"
    elif credentials.function is not None:
        remedy = "let the function in authParams return a valid one"
    else:
        remedy = "give a valid one in authParams" if file is None else f"write a valid one into {file}"
    return f"{_flaw_of_token(token)}; {remedy}"


def _flaw_of_token(token: str) -> str:
    """Return the cause of a refused token, if apparent. Its claims are not secret."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        expires = claims.get("exp")
        end = None if expires is None else datetime.fromtimestamp(float(expires), UTC)
    except (ValueError, IndexError, AttributeError, TypeError, OverflowError):
        return "the token is no JSON Web Token (JWT)"
    if end is not None and end <= datetime.now(UTC):
        return f"the token expired at {end:%Y-%m-%d %H:%M:%S} UTC"
    text = "the token is not signed with the broker's key, or the broker accepts no tokens"
    audience = claims.get("aud")
    return f"{text}, or only tokens for another audience than {shown(audience)}" if audience else text


def _values(kind: AuthKind, text: str) -> dict[str, str]:
    text = text.strip()
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            raise ConfigurationError("option authParams: starts like JSON but is not valid", key="authParams") from None
        given = {_SPELLINGS.get(name, name): str(value) for name, value in found.items() if value is not None}
        return _tokens(kind, given)
    if kind is AuthKind.TOKEN:
        return _tokens(kind, {"token": text})
    pairs = (part.partition(":") for part in text.split(",") if part)
    values = {_SPELLINGS.get(name.strip(), name.strip()): value.strip() for name, _, value in pairs}
    if kind is AuthKind.BASIC and not {"username", "password"} & values.keys():
        user, _, password = text.partition(":")  # the short form, user:password; the password can contain anything
        return {"username": user, "password": password}
    return values


def _tokens(kind: AuthKind, values: dict[str, str]) -> dict[str, str]:
    token = values.get("token")
    if kind is not AuthKind.TOKEN or token is None:
        return values
    if token.startswith("token:"):
        return {"token": token[len("token:") :].strip()}
    if token.startswith("file:"):
        path = unquote(token[len("file:") :])  # Java parses it as a URI
        return {"file": "/" + path.lstrip("/") if path.startswith("/") else path}
    return {**values, "token": token.strip()}


def authorities(config: Configuration) -> str:
    """Return the PEM file of trusted authorities: the configured one, else certifi's, a dependency of pulsar-client."""
    if config.tls_trust_certs_file_path is not None:
        return config.tls_trust_certs_file_path
    import certifi

    return certifi.where()


def tls_context(config: Configuration, credentials: Credentials | None) -> ssl.SSLContext:
    """Create the TLS context of a connection; raise JMSSecurityError if a certificate or key can't be read."""
    trusted = authorities(config)
    try:
        context = trusting(trusted)
    except OSError as error:
        raise _no_tls(f"option tlsTrustCertsFilePath = {shown(trusted)}", error) from error
    if not config.tls_enable_hostname_verification or config.tls_allow_insecure_connection:
        context.check_hostname = False
    if config.tls_allow_insecure_connection:
        context.verify_mode = ssl.CERT_NONE
    certificate = config.tls_certificate_file_path
    private_key = config.tls_key_file_path
    if credentials is not None and credentials.kind is AuthKind.TLS:
        certificate = credentials.values["tlsCertFile"]
        private_key = credentials.values["tlsKeyFile"]
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, private_key, password="")  # without one it would ask at the terminal
        except OSError as error:  # ssl.SSLError is an OSError
            raise _no_tls(f"certificate {certificate} with key {private_key}", error) from error
    return context


def _no_tls(what: str, error: OSError) -> JMSSecurityError:
    return JMSSecurityError(f"TLS is not possible: {what}: {error.strerror or error}", "AuthenticationError")
