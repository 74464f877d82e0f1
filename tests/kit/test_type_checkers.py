"""The checkers' errors come by the line of the source, whatever the source was wrapped in."""

from __future__ import annotations

import pytest

from tests.kit.type_checkers import CHECKERS, MARKS, declare, module, type_errors

RIGHT = "import jmsaio\n\nprint(jmsaio.__version__.upper())\n"
WRONG = "import jmsaio\n\nasync with jmsaio.conect() as connection:\n    pass\n"
declare(RIGHT, WRONG)


@pytest.mark.parametrize("checker", CHECKERS)
class TestChecker:
    pytestmark = MARKS

    def test_a_right_source_has_no_errors(self, checker: str) -> None:
        assert type_errors(checker, RIGHT) == {}

    def test_a_wrong_call_is_found_at_its_line(self, checker: str) -> None:
        found = type_errors(checker, WRONG)
        assert found.keys() == {3}
        assert "conect" in found[3][0]


def test_only_a_source_that_awaits_at_its_top_becomes_a_coroutine() -> None:
    assert module("x = 1\n") == ("x = 1\n", 0)
    text, shift = module("await f()\n")
    assert text.splitlines()[shift] == "    await f()"
    with pytest.raises(SyntaxError):
        module("await f(\n")
