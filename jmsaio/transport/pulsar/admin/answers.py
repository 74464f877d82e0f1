"""Validation of addresses and answers of the REST interface, and errors for refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from jmsaio.errors import AdminError, ConfigurationError, JMSSecurityError, NotFoundError
from jmsaio.transport.pulsar.admin.credentials import Credentials, flaw

if TYPE_CHECKING:
    import httpx

#: Start of the broker's message for a known client without permission, sent with the status of an unknown client.
_NO_RIGHT = "Unauthorized to"


def error_of(status: int, reason: str, what: str, credentials: Credentials | None = None, token: str = "") -> Exception:
    """Create the error for a call, ``what``, refused with that HTTP status and these credentials."""
    if status in (401, 403):
        if status == 403 or _NO_RIGHT in reason:
            return JMSSecurityError(f"{what}: the credentials have no right to do this [{status}] ({reason})")
        words = "" if reason.startswith("<") else f" ({reason})"  # an HTML page for browsers
        said = f"{what}: the broker refused the credentials [{status}]{words}: {flaw(credentials, token)}"
        return JMSSecurityError(said)
    if status == 404:
        return NotFoundError(f"{what}: does not exist ({reason})")
    return AdminError(f"{what}: status {status} ({reason})", status)


def reason_of(answer: httpx.Response) -> str:
    """Return the broker's reason: JSON with ``reason``, or the first line of plain text; limited to 300 characters."""
    try:
        text = str(answer.json()["reason"])
    except (ValueError, KeyError, TypeError):
        text = answer.text
    text = text.strip().splitlines()[0] if text.strip() else answer.reason_phrase
    return text[:300]


def base_url(text: str) -> str:
    """Validate the address of the REST interface; return it without trailing slashes."""
    key = "webServiceUrl"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port, or half an IPv6 address
        raise ConfigurationError(f"option {key}: not a URL of one host: http://host:port", key=key) from None
    if parts.username is not None:  # it would appear in messages and logs
        raise ConfigurationError(f"option {key}: credentials do not belong here but in authParams", key=key)
    if not usable or parts.query or parts.fragment:
        raise ConfigurationError(f"option {key} = {text!r}: needs http://host:port or https://host:port", key=key)
    return text.rstrip("/")


@contextmanager
def understanding(what: str) -> Iterator[None]:
    """Raise an AdminError for an answer that is not from Pulsar's REST interface."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        text = f"{what}: the answer is not one of Pulsar's REST interface; check webServiceUrl"
        raise AdminError(text, 200) from error


def moved(url: str, location: str, status: int) -> str:
    """Return the target of a redirect; refuse one from https to http, which would expose the credentials."""
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
