"""Parsing of authPlugin and authParams, for the binary protocol and REST.

Plug-ins are token, tls, basic and oauth2, by short name or by the name of Pulsar's Java class. Parameters are JSON or
the plug-in's own text (``token:xxx``, ``file:///path``, ``tlsCertFile:a,tlsKeyFile:b``), with the syntax of Pulsar's
Java client. For tokens, they can be a function that returns one.
"""

from __future__ import annotations

import base64
import enum
import json
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import anyio.to_thread
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError, JMSSecurityError
from jmsaio.model.arguments import shown
from jmsaio.protocol.handshake import Identity
from jmsaio.transport.pulsar.admin.causes import trusting
from jmsaio.transport.pulsar.admin.oauth import OAuthTokens, is_token, with_key


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


#: Names of the kinds in the protocol, unless the parameters name another one.
_METHODS = {AuthKind.TOKEN: "token", AuthKind.TLS: "tls", AuthKind.OAUTH2: "token", AuthKind.BASIC: "basic"}


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
        """Return the current token, "" for a kind without tokens. A file is read, or a function called, in a thread.

        Raises as ``read_token`` and ``OAuthTokens.token``.
        """
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
        """Return the headers of a REST call with ``token``, or with user and password."""
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
    return Identity(values.get("method") or _METHODS[credentials.kind], data.encode())


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
    """Convert ``token:xxx`` and ``file:///path`` in the values of the token plug-in."""
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
