"""What is behind a TLS error."""

from __future__ import annotations

import errno
import ssl

from jmsaio.transport.pulsar.admin.causes import distrust
from tests.transport.test_causes import raised


def test_an_alert_of_tls_names_the_clients_certificate() -> None:
    """Errors of other kinds are no matter of trust."""
    alert = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    told = distrust(raised(RuntimeError("outer"), ExceptionGroup("several", [alert])), "there:1")
    assert told is not None
    assert told.startswith("there:1 refuses the TLS connection (tlsv13 alert certificate required); check the client's")
    assert distrust(raised(RuntimeError("outer"), OSError(errno.ECONNREFUSED, "x")), "there:1") is None
