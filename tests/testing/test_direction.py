from __future__ import annotations

from jmsaio.testing.direction import FrameFault, Rules
from jmsaio.testing.frames import Command, Part

FRAME = (6).to_bytes(4) + (2).to_bytes(4) + b"\x08\x07"


def hit(rules: Rules, command: int = Command.SEND_RECEIPT) -> tuple[str, bytes] | None:
    return rules.hit(command, lambda: FRAME)


def test_a_fault_hits_as_often_as_it_says() -> None:
    """It lets ``skip`` frames pass, hits ``left`` of them, counts them and is over."""
    fault = FrameFault("swallow", Command.SEND_RECEIPT, skip=1, left=2)
    rules = Rules(faults=[fault])
    assert [hit(rules) for _ in range(4)] == [None, ("swallow", b""), ("swallow", b""), None]
    assert (fault.hits, fault.left) == (2, 0)


def test_a_fault_of_another_command_does_not_hit() -> None:
    """Frames of other commands neither suffer nor count."""
    fault = FrameFault("swallow", Command.SEND_RECEIPT, skip=1)
    rules = Rules(faults=[fault])
    assert hit(rules, Command.PONG) is None
    assert fault.skip == 1


def test_a_fault_without_an_end_and_one_for_every_command() -> None:
    """``left=None`` hits until it is taken away; without a command every frame is meant."""
    rules = Rules(faults=[FrameFault("cut", left=None)])
    assert [hit(rules, command) for command in (1, 2, 3)] == [("cut", FRAME[:5])] * 3


def test_a_part_that_is_not_there_is_not_flipped() -> None:
    """The fault waits for a frame that has the part."""
    fault = FrameFault("flip", part=Part.PAYLOAD)
    assert hit(Rules(faults=[fault])) is None
    assert (fault.hits, fault.left) == (0, 1)
