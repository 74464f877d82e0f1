"""Python in the README and the guides type-checks as a reader would write it: ``mypy --strict`` has nothing to say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.block_types import module, type_errors
from tests.support.documents import Block, all_blocks

pytestmark = [pytest.mark.xdist_group("documentation types"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Block, list[str]]:
    """What mypy says about each block."""
    return type_errors(all_blocks("python"), tmp_path_factory.mktemp("blocks"))


@pytest.mark.parametrize("block", all_blocks("python"), ids=str)
def test_python_type_checks(block: Block, errors: Mapping[Block, list[str]]) -> None:
    assert errors[block] == []


def test_a_wrong_call_in_a_block_is_found_at_its_line(tmp_path: Path) -> None:
    right = Block(Path("a.md"), 5, "python", "import jmsaio\n\nprint(jmsaio.__version__.upper())\n")
    wrong = Block(Path("b.md"), 9, "python", "import jmsaio\n\nasync with jmsaio.conect() as connection:\n    pass\n")
    found = type_errors([right, wrong], tmp_path)
    assert found[right] == []
    assert len(found[wrong]) == 1
    assert found[wrong][0].startswith("line 3 of the block: ")
    assert "conect" in found[wrong][0]


def test_only_blocks_that_await_at_the_top_become_a_coroutine() -> None:
    assert module("x = 1\n") == ("x = 1\n", 0)
    text, shift = module("await f()\n")
    assert text.splitlines()[shift] == "    await f()"
    with pytest.raises(SyntaxError):
        module("await f(\n")
