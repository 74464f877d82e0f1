"""The topics of temporary destinations are known by the front of their names."""

from __future__ import annotations

import pytest

from jmsaio.model.temporary_names import is_temporary


@pytest.mark.parametrize(
    ("topic", "temporary"),
    [
        ("persistent://public/default/jms-temp-queue-1", True),
        ("persistent://public/default/jms-temp-topic-1", True),
        ("jms-temp-queue-1", True),
        ("persistent://public/default/orders", False),
        ("persistent://public/jms-temp-queue-1/orders", False),
        ("persistent://public/default/my-jms-temp-queue-1", False),
    ],
)
def test_only_the_last_part_of_a_name_tells_a_temporary_destination(topic: str, temporary: bool) -> None:
    assert is_temporary(topic) is temporary
