"""Every way in which a broker, TLS or an OAuth 2.0 server refuses a client: its options, and what an error must say."""

from __future__ import annotations

import json
from collections.abc import Callable

import attrs

from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError
from jmsaio.launcher.auth import APP, GUEST
from tests.support.issuer import AUDIENCE, CLIENT, Issuer, sign
from tests.support.secure import OAuthBroker, SecureBroker

Options = dict[str, object]


@attrs.frozen
class Brokers:
    """Those that refuse.

    Attributes:
        secure: with tokens, TLS and authorisation.
        oauth: with tokens of an issuer.
        issuer: its issuer.
    """

    secure: SecureBroker
    oauth: OAuthBroker
    issuer: Issuer


@attrs.frozen
class Refusal:
    """A row of the table.

    Attributes:
        options: what the client connects with; what is given to it as a secret is in `SECRETS`, or in authParams.
        words: a regular expression for the message: the cause, and what to do.
        error: the error's class.
        reached: the client connects; only what it asks for is refused.
    """

    options: Callable[[Brokers], Options]
    words: str
    error: type[JMSError] = JMSSecurityError
    reached: bool = False


def _token(**how: object) -> Callable[[Brokers], Options]:
    return lambda brokers: brokers.secure.options(params=brokers.secure.token(**how))  # type: ignore[arg-type]


def _given(text: str) -> Callable[[Brokers], Options]:
    return lambda brokers: brokers.secure.options(params=text)


def _tls(**changes: object) -> Callable[[Brokers], Options]:
    return lambda brokers: brokers.secure.options(tls=True) | changes


def _certificate(name: str) -> Callable[[Brokers], Options]:
    return lambda brokers: brokers.secure.options(tls=True, plugin="tls", params=brokers.secure.certificate(name))


def _wrong_host(brokers: Brokers) -> Options:
    options = brokers.secure.options(tls=True)
    return {name: str(value).replace("//localhost", "//127.0.0.1") for name, value in options.items()}


def _stranger(brokers: Brokers) -> Options:
    return brokers.secure.options(tls=True) | {"tlsTrustCertsFilePath": str(brokers.secure.stranger)}


def _default_trust(brokers: Brokers) -> Options:
    return {name: value for name, value in brokers.secure.options(tls=True).items() if "Trust" not in name}


def _other_scheme(tls: bool) -> Callable[[Brokers], Options]:
    """The URLs of the schemes with TLS (or without) and the ports of the other ones."""

    def options(brokers: Brokers) -> Options:
        here, there = brokers.secure.options(tls=tls), brokers.secure.options(tls=not tls)
        for name in ("brokerServiceUrl", "webServiceUrl"):
            here[name] = f"{str(here[name]).partition('://')[0]}://{str(there[name]).partition('://')[2]}"
        return here

    return options


def _oauth(**changes: str | None) -> Callable[[Brokers], Options]:
    return lambda brokers: brokers.oauth.options("oauth2", brokers.issuer.parameters(**changes))


def _oauth_answer(status: int, body: bytes) -> Callable[[Brokers], Options]:
    def options(brokers: Brokers) -> Options:
        brokers.issuer.answer = status, body
        return _oauth()(brokers)

    return options


def _other_audience(brokers: Brokers) -> Options:
    return brokers.oauth.options("token", sign(brokers.oauth.key, sub=APP, aud="somebody"))


def _demanded(certificate: str | None) -> Callable[[Brokers], Options]:
    """A good token, and TLS where the client's certificate is demanded."""
    return lambda brokers: brokers.oauth.tls_options(sign(brokers.oauth.key, sub=CLIENT, aud=AUDIENCE), certificate)


REFUSALS: dict[str, Refusal] = {
    "no token": Refusal(
        lambda brokers: brokers.secure.options(plugin=None), "none are given; set authPlugin and authParams"
    ),
    "garbage": Refusal(_given("garbage-token"), r"the token is no JSON Web Token \(JWT\); give a valid one"),
    "forged": Refusal(_token(key=b"x" * 32), "the token is not signed with the broker's key"),
    "expired": Refusal(_token(lifetime=-60), r"the token expired at 20.* UTC; give a valid one in authParams"),
    "no token file": Refusal(_given("file:///no/such"), "token file /no/such: No such file"),
    "no right": Refusal(_token(role=GUEST), "the credentials have no right to do this", reached=True),
    "wrong audience": Refusal(_other_audience, "for another audience than 'somebody'"),
    "user and password": Refusal(
        lambda brokers: brokers.secure.options(plugin="basic", params="me:hidden"), "wrong user or password; check"
    ),
    "unknown authority": Refusal(
        _stranger, r"certificate of \S*localhost:\d+ is not trusted: .*; name the file .* with tlsTrustCertsFilePath"
    ),
    "default trust": Refusal(_default_trust, r"certificate of \S*localhost:\d+ is not trusted"),
    "no trust file": Refusal(
        _tls(tlsTrustCertsFilePath="/no/such.pem"), r"tlsTrustCertsFilePath = '/no/such\.pem': No such file"
    ),
    "wrong host name": Refusal(
        _wrong_host, r"certificate of \S*127\.0\.0\.1:\d+ is for another host: .*; connect by a name that it has"
    ),
    "no certificate": Refusal(
        lambda brokers: brokers.secure.options(tls=True, plugin=None), "none are given; set authPlugin and authParams"
    ),
    "no certificate file": Refusal(_certificate("missing"), r"certificate \S*missing\.pem .*No such file"),
    "certificate of another authority": Refusal(_certificate("forged"), "check the client's certificate"),
    "demanded certificate missing": Refusal(_demanded(None), "check the client's certificate"),
    "demanded certificate of another authority": Refusal(_demanded("forged"), "check the client's certificate"),
    "TLS port with a plain URL": Refusal(
        _other_scheme(tls=False), r"\d speaks TLS: write pulsar\+ssl:// \(REST: https://\)"
    ),
    "plain port with a TLS URL": Refusal(
        _other_scheme(tls=True), r"\d speaks no TLS: .* write pulsar:// \(REST: http://\)"
    ),
    "issuer away": Refusal(
        _oauth(issuerUrl="http://127.0.0.1:9"), r"OAuth 2\.0.*http://127\.0\.0\.1:9.*Connection refused",
        BrokerUnavailableError,
    ),
    "issuer broken": Refusal(_oauth_answer(503, b"busy"), r"OAuth 2\.0.*503", BrokerUnavailableError),
    "no issuer": Refusal(_oauth_answer(200, b"<html>"), r"OAuth 2\.0.*issuerUrl"),
    "issuer refuses": Refusal(_oauth(clientSecret="hidden"), r"OAuth 2\.0.*401.*invalid_client"),
    "issuer signs for another audience": Refusal(_oauth(audience="somebody"), "for another audience than 'somebody'"),
    "no key file": Refusal(
        _oauth(clientId=None, clientSecret=None, privateKey="file:///no/such.json"), r"/no/such\.json .*: No such file"
    ),
}  # fmt: skip


def secrets_of(options: Options) -> list[str]:
    """What no message may show."""
    given = str(options.get("authParams", ""))
    if given.startswith("{"):
        return [value for name, value in json.loads(given).items() if name == "clientSecret"]
    if given.startswith(("file:", "tlsCertFile:")):
        return []
    return [given, given.rpartition(":")[2]] if given else []
