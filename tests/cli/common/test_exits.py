"""The exit codes, as they are documented."""

from jmsaio import cli
from jmsaio.cli.common import exits


def test_codes_are_the_documented_ones() -> None:
    assert (exits.OK, exits.ERROR, exits.USAGE, exits.NOTHING, exits.INTERRUPTED) == (0, 1, 2, 3, 130)
    assert (exits.DATA_LOSS, exits.PARTLY) == (4, 5)
    assert "0 done, 1 error, 2 wrong usage" in (cli.__doc__ or "")
