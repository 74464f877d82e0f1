"""Addresses and answers of the REST interface: which are usable, and which error a refusal is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from jmsaio.errors import AdminError, ConfigurationError, JMSSecurityError, NotFoundError
from jmsaio.transport.pulsar.admin.credentials import Credentials, flaw

if TYPE_CHECKING:
    import httpx

#: The broker's words for a known client that lacks a right, which it tells with the status of an unknown one.
_NO_RIGHT = "Unauthorized to"


def error_of(status: int, reason: str, what: str, credentials: Credentials | None = None, token: str = "") -> Exception:
    """The error for a refusal with that HTTP status of a call, ``what``, that showed these credentials."""
    if status in (401, 403):
        if status == 403 or _NO_RIGHT in reason:
            return JMSSecurityError(f"{what}: the credentials have no right to do this [{status}] ({reason})")
        words = "" if reason.startswith("<") else f" ({reason})"  # a page for browsers
        said = f"{what}: the broker refused the credentials [{status}]{words}: {flaw(credentials, token)}"
        return JMSSecurityError(said)
    if status == 404:
        return NotFoundError(f"{what}: does not exist ({reason})")
    return AdminError(f"{what}: status {status} ({reason})", status)


def reason_of(answer: httpx.Response) -> str:
    """The broker's words: JSON with ``reason``, or plain text; at most one line of them."""
    try:
        text = str(answer.json()["reason"])
    except (ValueError, KeyError, TypeError):
        text = answer.text
    text = text.strip().splitlines()[0] if text.strip() else answer.reason_phrase
    return text[:300]


def base_url(text: str) -> str:
    """The address of the REST interface, without the slash at its end."""
    key = "webServiceUrl"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address
        raise ConfigurationError(f"option {key}: not a URL of one host: http://host:port", key=key) from None
    if parts.username is not None:  # it would be shown in messages and logs
        raise ConfigurationError(f"option {key}: credentials do not belong here but in authParams", key=key)
    if not usable or parts.query or parts.fragment:
        raise ConfigurationError(f"option {key} = {text!r}: needs http://host:port or https://host:port", key=key)
    return text.rstrip("/")


@contextmanager
def understanding(what: str) -> Iterator[None]:
    """An answer that is not what a broker says (something else listens there) becomes an AdminError."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        text = f"{what}: the answer is not one of Pulsar's REST interface; check webServiceUrl"
        raise AdminError(text, 200) from error


def moved(url: str, location: str, status: int) -> str:
    """Where a redirect leads; never from https to http, which would show the credentials."""
    try:
        target = urljoin(url, location)
        usable = urlsplit(target).port != 0 and target.startswith(("http://", "https://"))
    except ValueError:  # as in base_url
        usable = False
    if not usable:
        raise AdminError(f"the broker redirects from {url} to {location!r}, which is no address", status)
    if url.startswith("https:") and not target.startswith("https:"):
        raise AdminError(f"the broker redirects from {url} to the unprotected {target}", status)
    return target
