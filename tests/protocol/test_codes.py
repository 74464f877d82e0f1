"""Enumerations have Pulsar's numbers."""

from __future__ import annotations

import enum

import pytest

from jmsaio.protocol import codes

pytestmark = pytest.mark.fast


def test_numbers_are_those_of_pulsar() -> None:
    """The last number of each; their order is that of the protocol."""
    found = [kind for kind in vars(codes).values() if isinstance(kind, type) and kind.__module__ == codes.__name__]
    kinds = {kind.__name__: list(kind) for kind in found if issubclass(kind, enum.IntEnum)}
    assert {name: (len(members), members[-1].name) for name, members in kinds.items()} == {
        "ServerError": (26, "ProducerFenced"),
        "SubType": (4, "Key_Shared"),
        "InitialPosition": (2, "Earliest"),
        "ProducerAccessMode": (4, "ExclusiveWithFencing"),
        "CompressionType": (5, "SNAPPY"),
        "LookupType": (3, "Failed"),
        "TxnAction": (2, "ABORT"),
    }
    assert all(members == list(range(len(members))) for members in kinds.values())
