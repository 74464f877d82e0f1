"""A real broker with tokens, mutual TLS and authorisation: who is who in it, and its addresses."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import httpx

from jmsaio.launcher import auth
from jmsaio.launcher.broker import free_ports
from jmsaio.launcher.settings import parse_settings
from jmsaio.launcher.state import locked
from tests.support.broker import LaunchedBroker
from tests.support.certificates import make_authority, make_certificate
from tests.support.issuer import AUDIENCE, CLIENT, make_keys, sign

#: Of the user ``app``.
PASSWORD = "password-of-the-app"
_PROVIDERS = "org.apache.pulsar.broker.authentication.AuthenticationProvider"


def _make_certificates(folder: Path) -> None:
    """An authority, a broker's certificate and one of the role ``app`` by it; another authority's ``forged``."""
    make_authority(folder, "authority")
    make_authority(folder, "stranger")
    make_certificate(folder, "authority", "broker", "DNS:localhost")
    make_certificate(folder, "authority", "app", "DNS:app")
    make_certificate(folder, "stranger", "forged", "DNS:app")


def _tls_settings(certificates: Path) -> dict[str, str]:
    broker_port, web_port = free_ports(2)
    return {
        "brokerServicePortTls": str(broker_port),
        "webServicePortTls": str(web_port),
        "tlsCertificateFilePath": str(certificates / "broker.pem"),
        "tlsKeyFilePath": str(certificates / "broker.key"),
        "tlsTrustCertsFilePath": str(certificates / "authority.pem"),
    }


def _tls_urls(home: Path) -> tuple[str, str]:
    """The addresses of a broker that runs, on Pulsar's protocol and REST."""
    settings = parse_settings((home / "standalone.conf").read_text(encoding="utf-8"))
    return (
        f"pulsar+ssl://localhost:{settings['brokerServicePortTls']}",
        f"https://localhost:{settings['webServicePortTls']}",
    )


class SecureBroker(LaunchedBroker):
    """It knows the roles of ``jmsaio broker start --auth token``, by token or by the name in a client's certificate.

    It knows the role ``app`` by its name and `PASSWORD`, too.

    Attributes:
        authority: PEM file of the authority that signed the certificates of the broker and of the role ``app``.
        stranger: PEM file of another authority.
        tls_url: ``pulsar+ssl://localhost:<port>``.
        tls_web_url: ``https://localhost:<port>``.
    """

    def __init__(self, folder: Path) -> None:
        certificates = folder / "certificates"
        self.authority, self.stranger = certificates / "authority.pem", certificates / "stranger.pem"
        self._certificates = certificates
        self._home = folder / "broker"
        with locked(folder / "secure.lock"):
            if not certificates.exists():
                self._make_files(folder / "part")
        settings = {
            "authenticationProviders": f"{_PROVIDERS}Token,{_PROVIDERS}Tls,{_PROVIDERS}Basic",
            "basicAuthConf": (certificates / "users").as_uri(),
            "authenticationRefreshCheckSeconds": "1",
        }
        super().__init__(self._home, "512m", settings | _tls_settings(certificates), auth="token")
        self.tls_url = self.tls_web_url = ""

    def _make_files(self, part: Path) -> None:
        part.mkdir(parents=True)
        _make_certificates(part)
        hashed = ["openssl", "passwd", "-apr1", PASSWORD]
        line = subprocess.run(hashed, capture_output=True, check=True, text=True, timeout=60).stdout
        (part / "users").write_text(f"{auth.APP}:{line}", encoding="ascii")
        part.rename(self._certificates)

    def start(self) -> None:
        super().start()
        self.tls_url, self.tls_web_url = _tls_urls(self._home)

    def options(
        self, *, tls: bool = False, plugin: str | None = "token", params: str | None = None
    ) -> dict[str, object]:
        """What `jmsaio.connect` takes: the role ``app`` with its token, unless told otherwise."""
        options: dict[str, object] = {
            "brokerServiceUrl": self.tls_url if tls else self.service_url,
            "webServiceUrl": self.tls_web_url if tls else self.web_service_url,
        }
        if tls:
            options["tlsTrustCertsFilePath"] = str(self.authority)
        if plugin is not None:
            options |= {"authPlugin": plugin, "authParams": params if params is not None else self.token()}
        return options

    def token(self, role: str = auth.APP, lifetime: float | None = None, key: bytes | None = None) -> str:
        """A token of a role; it expires after so many seconds, and another key forges it."""
        if key is None:
            key = (self._home / "auth" / "secret.key").read_bytes()
        return auth.sign(role, key, None if lifetime is None else time.time() + lifetime)

    def token_file(self, role: str = auth.APP) -> Path:
        """The file with the token of a role, which does not expire."""
        return auth.token_file(self._home, role)

    def namespace(self, name: str) -> str:
        """Create a namespace in which the role ``app`` is allowed to send and receive; its full name."""
        self.administrate("PUT", f"namespaces/public/{name}")
        self.allow(f"public/{name}", "produce", "consume")
        return f"public/{name}"

    def allow(self, namespace: str, *actions: str) -> None:
        """Let the role ``app`` do this in a namespace, and nothing else."""
        path = f"namespaces/{namespace}/permissions/{auth.APP}"
        self.administrate("POST" if actions else "DELETE", path, list(actions))

    def backlog(self, queue: str) -> int:
        """How many messages of a queue, given by its topic's full name, are not acknowledged yet."""
        stats = self.administrate("GET", f"{queue.replace('://', '/')}/stats").json()
        return int(stats["subscriptions"]["jms-queue"]["msgBacklog"])

    def administrate(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Call the REST interface as the role ``admin``."""
        shown = {"Authorization": f"Bearer {self.token(auth.ADMIN)}"}
        url = f"{self.web_service_url}/admin/v2/{path}"
        return httpx.request(method, url, headers=shown, json=body, timeout=30).raise_for_status()

    def certificate(self, name: str = auth.APP) -> str:
        """``authParams`` of the plug-in ``tls``: the certificate and the key of a role; ``forged`` is a stranger's."""
        folder = self._certificates
        return f"tlsCertFile:{folder / f'{name}.pem'},tlsKeyFile:{folder / f'{name}.key'}"


class OAuthBroker(LaunchedBroker):
    """It takes tokens that an `Issuer` signs for the audience `AUDIENCE`, and allows their roles everything.

    Its TLS ports demand a client's certificate, too.

    Attributes:
        key: the issuer's private key.
    """

    def __init__(self, folder: Path) -> None:
        self.key = folder / "issuer" / "issuer.key"
        with locked(folder / "oauth.lock"):
            if not self.key.exists():
                (folder / "part").mkdir(parents=True)
                make_keys(folder / "part")
                _make_certificates(folder / "part")
                admin = sign(folder / "part" / "issuer.key", sub=auth.ADMIN, aud=AUDIENCE)
                (folder / "part" / "admin.token").write_text(admin, encoding="ascii")
                (folder / "part").rename(self.key.parent)
        settings = {
            "authenticationEnabled": "true",
            "authenticationProviders": f"{_PROVIDERS}Token",
            "authenticationRefreshCheckSeconds": "1",
            "authorizationEnabled": "true",
            "superUserRoles": f"{auth.ADMIN},{CLIENT}",
            "tokenPublicKey": self.key.with_suffix(".pub").as_uri(),
            "tokenAudienceClaim": "aud",
            "tokenAudience": AUDIENCE,
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": self.key.with_name("admin.token").as_uri(),
        }
        self._home, self._certificates = folder / "broker", self.key.parent
        settings |= {"tlsRequireTrustedClientCertOnConnect": "true", **_tls_settings(self._certificates)}
        super().__init__(self._home, "512m", settings)

    def options(self, plugin: str, params: str) -> dict[str, object]:
        """What `jmsaio.connect` takes."""
        return {
            "brokerServiceUrl": self.service_url, "webServiceUrl": self.web_service_url,
            "authPlugin": plugin, "authParams": params,
        }  # fmt: skip

    def tls_options(self, token: str, certificate: str | None) -> dict[str, object]:
        """What `jmsaio.connect` takes: TLS, a token, and the client's certificate of that name."""
        broker, web = _tls_urls(self._home)
        options: dict[str, object] = {
            "brokerServiceUrl": broker, "webServiceUrl": web, "authPlugin": "token", "authParams": token,
            "tlsTrustCertsFilePath": str(self._certificates / "authority.pem"),
        }  # fmt: skip
        if certificate is not None:
            files = self._certificates / f"{certificate}.pem", self._certificates / f"{certificate}.key"
            options |= {"tlsCertificateFilePath": str(files[0]), "tlsKeyFilePath": str(files[1])}
        return options
