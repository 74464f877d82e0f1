"""The metadata of a connection (Jakarta Messaging 3.1, 6.1.6 ConnectionMetaData)."""

from __future__ import annotations

from jmsaio import ConnectionMetaData, __version__


def test_versions_and_names() -> None:
    metadata = ConnectionMetaData()
    assert (metadata.jms_version, metadata.jms_major_version, metadata.jms_minor_version) == ("3.1", 3, 1)
    assert metadata.provider_version == __version__
    assert "JMSXGroupID" in list(metadata.get_jmsx_property_names())
