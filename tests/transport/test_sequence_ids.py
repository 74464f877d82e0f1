"""What both transports know of the sequence ids that a sender's records were given."""

from __future__ import annotations

import pytest

from jmsaio.errors import IllegalArgumentError, IllegalStateError
from jmsaio.transport.sequence_ids import HIGHEST, SequenceIds


def test_the_highest_confirmed_number_of_each_partition_is_the_last() -> None:
    ids = SequenceIds("t", False, {"t-0": -1, "t-1": 7})
    for partition, number in (("t-0", 0), ("t-0", 5), ("t-0", 3), ("t-1", 6)):
        ids.confirm(partition, number)
    assert ids.last == {"t-0": 5, "t-1": 7}


@pytest.mark.parametrize("number", [0, 1, HIGHEST])
def test_a_number_in_the_range_is_taken(number: int) -> None:
    assert SequenceIds("t", False).checked(number) == number


@pytest.mark.parametrize("number", [-1, HIGHEST + 1])
def test_a_number_out_of_the_range_is_refused(number: int) -> None:
    with pytest.raises(IllegalArgumentError, match=f"record to t: sequence_id is {number}"):
        SequenceIds("t", False).checked(number)


def test_a_sender_of_batches_takes_no_numbers() -> None:
    with pytest.raises(IllegalStateError, match=r"id 3 to t: .*batchingEnabled=false"):
        SequenceIds("t", True).checked(3)
