"""ConnectionMetaData: versions and names (jms-spec 5.6)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from jmsaio.model.version import __version__


@attrs.frozen
class ConnectionMetaData:
    """What ``connection.metadata`` tells (jms-spec 5.6)."""

    jms_version: str = "3.1"
    jms_major_version: int = 3
    jms_minor_version: int = 1
    jms_provider_name: str = "jmsaio"
    provider_version: str = __version__
    provider_major_version: int = int(__version__.split(".")[0])
    provider_minor_version: int = int(__version__.split(".")[1])
    jmsx_property_names: tuple[str, ...] = ("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount")

    def get_jmsx_property_names(self) -> Iterator[str]:
        """The JMSX properties that are supported."""
        return iter(self.jmsx_property_names)
