"""authPlugin and authParams: every spelling, what is refused, and that nothing secret is ever shown."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import ConfigurationError, JMSSecurityError
from jmsaio.protocol.handshake import Identity
from jmsaio.transport.pulsar.admin.credentials import (
    AuthKind,
    Credentials,
    flaw,
    identity_of,
    read_credentials,
    tls_context,
)

SECRET = "s3cr3t"
JAVA = "org.apache.pulsar.client.impl.auth."


def test_no_plugin_is_nobody() -> None:
    assert read_credentials(None, None) is None
    assert read_credentials(None, "token:x") is None


@pytest.mark.parametrize(
    ("plugin", "parameters", "kind", "values"),
    [
        ("token", "token:abc.def-ghi_j", AuthKind.TOKEN, {"token": "abc.def-ghi_j"}),
        ("token", "abc", AuthKind.TOKEN, {"token": "abc"}),
        ("token", "  token: abc \n", AuthKind.TOKEN, {"token": "abc"}),
        ("TOKEN", '{"token": "abc"}', AuthKind.TOKEN, {"token": "abc"}),
        ("token", '{"token": " abc\\n"}', AuthKind.TOKEN, {"token": "abc"}),
        ("token", '{"token": "file:///run/token"}', AuthKind.TOKEN, {"file": "/run/token"}),
        (JAVA + "AuthenticationToken", "file:///run/my%20token", AuthKind.TOKEN, {"file": "/run/my token"}),
        ("token", "file:/run/token", AuthKind.TOKEN, {"file": "/run/token"}),
        ("token", "file:token.txt", AuthKind.TOKEN, {"file": "token.txt"}),
        ("token", "token:a:b,c=", AuthKind.TOKEN, {"token": "a:b,c="}),
        (
            JAVA + "AuthenticationTls",
            "tlsCertFile:/a.pem, tlsKeyFile:/b.pem",
            AuthKind.TLS,
            {"tlsCertFile": "/a.pem", "tlsKeyFile": "/b.pem"},
        ),
        (
            "tls",
            '{"tlsCertFile": "/a.pem", "tlsKeyFile": "/b.pem"}',
            AuthKind.TLS,
            {"tlsCertFile": "/a.pem", "tlsKeyFile": "/b.pem"},
        ),
        ("basic", "ann:pw", AuthKind.BASIC, {"username": "ann", "password": "pw"}),
        ("basic", "ann:p:w,x ", AuthKind.BASIC, {"username": "ann", "password": "p:w,x"}),
        ("basic", "userId:ann,password:pw", AuthKind.BASIC, {"username": "ann", "password": "pw"}),
        (
            JAVA + "AuthenticationBasic",
            '{"userId": "ann", "password": "p,w"}',
            AuthKind.BASIC,
            {"username": "ann", "password": "p,w"},
        ),
        (
            JAVA + "oauth2.AuthenticationOAuth2",
            '{"issuerUrl": "https://i", "privateKey": "file:///k", "audience": null}',
            AuthKind.OAUTH2,
            {"issuer_url": "https://i", "private_key": "/k"},
        ),
        (
            "oauth2",
            '{"issuerUrl": "https://i", "clientId": "c", "clientSecret": "d"}',
            AuthKind.OAUTH2,
            {"issuer_url": "https://i", "client_id": "c", "client_secret": "d"},
        ),
    ],
)
def test_every_spelling_of_credentials_is_read(
    plugin: str, parameters: str, kind: AuthKind, values: Mapping[str, str]
) -> None:
    assert read_credentials(plugin, parameters) == Credentials(kind, values)


@pytest.mark.parametrize(
    ("plugin", "parameters", "key", "words"),
    [
        ("kerberos", SECRET, "authPlugin", "known are token, tls, basic, oauth2"),
        ("", SECRET, "authPlugin", "known are"),
        ("token", None, "authParams", "needs token or file"),
        ("token", "token:", "authParams", "needs token or file"),
        ("token", '{"tokken": "s3cr3t"}', "authParams", "needs token or file"),
        ("token", '{"token": null, "x": "s3cr3t"}', "authParams", "needs token or file"),
        ("token", '{"token": "s3cr3t"', "authParams", "starts like JSON"),
        ("token", "token:s3cr3t\nX-Injected: 1", "authParams", "a blank"),
        ("token", "token:s3cr3tä", "authParams", "beyond ASCII"),
        ("tls", "tlsCertFile:s3cr3t", "authParams", "needs tlsCertFile and tlsKeyFile"),
        ("basic", "s3cr3t", "authParams", "needs username and password"),
        ("basic", "password:s3cr3t", "authParams", "needs username and password"),
        ("basic", "username:s3cr3t", "authParams", "needs username and password"),
        ("basic", None, "authParams", "needs username and password"),
        ("oauth2", '{"clientSecret": "s3cr3t"}', "authParams", "issuer_url and private_key or issuer_url"),
    ],
)
def test_refusals_never_show_the_parameters(plugin: str, parameters: str | None, key: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        read_credentials(plugin, parameters)
    assert caught.value.key == key
    assert SECRET not in "".join(traceback.format_exception_only(caught.value)) + repr(caught.value)


@pytest.mark.parametrize(
    ("plugin", "parameters"),
    [
        ("token", SECRET),
        ("basic", f"ann:{SECRET}"),
        ("oauth2", f'{{"issuerUrl": "i", "clientId": "c", "clientSecret": "{SECRET}"}}'),
    ],
)
def test_credentials_are_never_shown(plugin: str, parameters: str) -> None:
    credentials = read_credentials(plugin, parameters)
    assert SECRET not in repr(credentials) + str(credentials) + f"{credentials}"
    assert SECRET not in repr(load("pulsar://h:6650", auth_plugin=plugin, auth_params=parameters))


async def test_a_token_file_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "the token"
    file.write_text("first\n")
    credentials = read_credentials("token", f"file://{file}")
    assert credentials is not None
    assert await credentials.token() == "first"
    file.write_text(" second ")
    assert await credentials.token() == "second"


async def test_a_function_is_called_anew() -> None:
    tokens = ["first", " token:second\n"]
    credentials = read_credentials("token", lambda: tokens.pop(0))
    assert credentials is not None
    assert await credentials.token() == "first"
    assert credentials.read_token() == "second"


@pytest.mark.parametrize("source", ["file:///a/file", lambda: "a function"])
async def test_a_token_is_not_read_in_the_loops_thread(monkeypatch: pytest.MonkeyPatch, source: Any) -> None:
    monkeypatch.setattr(Credentials, "read_token", lambda self: str(threading.get_ident()))
    credentials = read_credentials("token", source)
    assert credentials is not None
    assert await credentials.token() != str(threading.get_ident())


def test_a_function_is_for_tokens_only() -> None:
    with pytest.raises(ConfigurationError, match="a function is for authPlugin=token only"):
        read_credentials("oauth2", str)


@pytest.mark.parametrize("given", ["", "two words", None, 5, b"bytes"])
async def test_a_function_without_a_token_is_refused(given: Any) -> None:
    with pytest.raises(JMSSecurityError, match="the function in authParams returned no token"):
        await Credentials(AuthKind.TOKEN, {}, lambda: given).token()


async def test_an_error_of_a_function_is_named_without_its_words() -> None:
    def fail() -> str:
        raise KeyError(SECRET)

    with pytest.raises(JMSSecurityError, match="the function in authParams raised KeyError") as caught:
        await Credentials(AuthKind.TOKEN, {}, fail).token()
    assert SECRET not in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("content", [b"", b" \n", b"s3cr3t two", b"s3cr3t\nX-Injected: 1", b"s3cr3t\xff\xfe"])
def test_a_file_without_one_token_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(JMSSecurityError, match="does not hold one token") as caught:
        Credentials(AuthKind.TOKEN, {"file": str(file)}).read_token()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["missing", ".", "zero\0"])
def test_a_token_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(JMSSecurityError, match="token file"):
        Credentials(AuthKind.TOKEN, {"file": str(tmp_path / name)}).read_token()


@pytest.mark.parametrize(
    ("kind", "values", "identity"),
    [
        (AuthKind.TOKEN, {"token": "t"}, Identity("token", b"t")),
        (AuthKind.TLS, {}, Identity("tls")),
        (AuthKind.BASIC, {"username": "a", "password": "b"}, Identity("basic", b"a:b")),
        (AuthKind.BASIC, {"username": "a", "password": "b", "method": "mine"}, Identity("mine", b"a:b")),
    ],
)
def test_a_client_introduces_itself_by_method_and_data(
    kind: AuthKind, values: dict[str, str], identity: Identity
) -> None:
    assert identity_of(Credentials(kind, values), values.get("token", "")) == identity
    assert identity_of(None, "") == Identity()


def test_the_basic_header_holds_name_and_password_in_utf8() -> None:
    headers = Credentials(AuthKind.BASIC, {"username": "änn", "password": "p:w"}).headers("")
    scheme, _, value = headers["Authorization"].partition(" ")
    assert scheme == "Basic"
    assert base64.b64decode(value).decode() == "änn:p:w"


@pytest.mark.parametrize(
    ("options", "names", "mode"),
    [
        ({"tls_enable_hostname_verification": False}, False, ssl.CERT_REQUIRED),
        ({"tls_enable_hostname_verification": True}, True, ssl.CERT_REQUIRED),
        ({"tls_enable_hostname_verification": True, "tls_allow_insecure_connection": True}, False, ssl.CERT_NONE),
    ],
)
def test_host_names_and_certificates_are_checked_as_configured(
    options: dict[str, Any], names: bool, mode: ssl.VerifyMode
) -> None:
    context = tls_context(attrs.evolve(load("pulsar://broker:6650"), **options), None)
    assert (context.check_hostname, context.verify_mode) == (names, mode)


def _claims(**claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.c2ln"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (_claims(sub="a", exp=1000), "the token expired at 1970-01-01 00:16:40 UTC; give a valid one in authParams"),
        (_claims(sub="a"), "the token is not signed with the broker's key, or the broker accepts no tokens; give"),
        (_claims(sub="a", aud=["b", "c"]), "or only tokens for another audience than ['b', 'c']; give"),
        (_claims(sub="a", exp="soon"), "no JSON Web Token"),
        (_claims(sub="a", exp=1e300), "no JSON Web Token"),
        ("e30.WzFd.c2ln", "no JSON Web Token"),
        ("e30.!!!.c2ln", "no JSON Web Token"),
        ("plain", "no JSON Web Token"),
    ],
)
def test_what_is_wrong_with_a_token_is_found_without_showing_it(token: str, words: str) -> None:
    found = flaw(Credentials(AuthKind.TOKEN, {"token": token}), token)
    assert words in found
    assert token not in found
