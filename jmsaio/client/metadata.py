"""ConnectionMetaData: versions and names (Jakarta Messaging 3.1, 6.1.6 ConnectionMetaData)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from jmsaio.model.headers import JMSX
from jmsaio.model.public import created_by, public
from jmsaio.model.version import __version__


@public
@created_by("connection.get_meta_data")
@attrs.frozen
class ConnectionMetaData:
    """Versions of Jakarta Messaging and of the provider, from ``connection.metadata``."""

    jms_version: str = "3.1"
    jms_major_version: int = 3
    jms_minor_version: int = 1
    jms_provider_name: str = "jmsaio"
    provider_version: str = __version__
    provider_major_version: int = int(__version__.split(".")[0])
    provider_minor_version: int = int(__version__.split(".")[1])
    jmsx_property_names: tuple[str, ...] = JMSX

    def get_jmsx_property_names(self) -> Iterator[str]:
        """Return the names of the supported JMSX properties, as an iterator."""
        return iter(self.jmsx_property_names)
