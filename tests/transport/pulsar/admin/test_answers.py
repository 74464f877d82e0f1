"""Redirects of the REST interface; ``test_rest`` has refusals and addresses, by what a caller sees of them."""

from __future__ import annotations

import pytest

from jmsaio.errors import AdminError
from jmsaio.transport.pulsar.admin.answers import moved


@pytest.mark.parametrize(
    ("location", "refused"),
    [("http://other/x", True), ("https://other/x", False), ("/x", False)],
)
def test_a_redirect_never_leads_from_a_protected_address_to_an_unprotected_one(location: str, refused: bool) -> None:
    """Credentials would go there in the clear."""
    if refused:
        with pytest.raises(AdminError, match="unprotected"):
            moved("https://broker/admin", location, 307)
    else:
        assert moved("https://broker/admin", location, 307).startswith("https://")
