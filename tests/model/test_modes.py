"""Delivery modes and acknowledge modes."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.errors import IllegalArgumentError, JMSError
from jmsaio.model.modes import AcknowledgeMode, DeliveryMode


def test_modes_have_the_numbers_of_jms() -> None:
    assert {mode.name: int(mode) for mode in AcknowledgeMode} == {
        "TRANSACTED": 0, "AUTO": 1, "CLIENT": 2, "DUPS_OK": 3, "INDIVIDUAL": 4,
    }  # fmt: skip
    assert AcknowledgeMode["CLIENT_INDIVIDUAL"] is AcknowledgeMode.INDIVIDUAL
    assert {mode.name: int(mode) for mode in DeliveryMode} == {"NON_PERSISTENT": 1, "PERSISTENT": 2}


@pytest.mark.parametrize("mode", AcknowledgeMode)
def test_a_mode_of_its_number_which_says_what_to_write(mode: AcknowledgeMode) -> None:
    assert AcknowledgeMode.of(mode) is mode
    with pytest.warns(DeprecationWarning, match=f"write AcknowledgeMode.{mode.name} instead of {mode.value}"):
        assert AcknowledgeMode.of(mode.value) is mode


def test_individual_has_a_second_number() -> None:
    with pytest.warns(DeprecationWarning, match=r"write AcknowledgeMode\.INDIVIDUAL instead of 101"):
        assert AcknowledgeMode.of(101) is AcknowledgeMode.INDIVIDUAL


@pytest.mark.parametrize(
    "value", [DeliveryMode.PERSISTENT, -1, 5, 100, pytest.param(10**6000, id="long"), True, False, None, "AUTO", 1.0]
)
def test_no_such_mode(value: Any) -> None:
    with pytest.raises(JMSError, match="AUTO"):
        AcknowledgeMode.of(value)


@pytest.mark.parametrize("kind", [AcknowledgeMode, DeliveryMode])
@pytest.mark.parametrize("value", [-1, 100, None, "AUTO", []])
def test_no_mode_of_that_value(kind: type[AcknowledgeMode | DeliveryMode], value: Any) -> None:
    with pytest.raises(
        IllegalArgumentError, match=rf"there is no (acknowledge|delivery) mode .*; use one of {kind.__name__}\.\w+, "
    ):
        kind(value)
