"""Python in the README and the guides type-checks as a reader would write it: mypy and pyright have nothing to say."""

from __future__ import annotations

import pytest

from tests.kit.type_checkers import CHECKERS, MARKS, declare, type_errors
from tests.support.documents import Block, all_blocks

pytestmark = MARKS

#: `tests/spark` has those with Spark.
BLOCKS = [block for block in all_blocks("python") if not block.needs_spark]
declare(*(block.text for block in BLOCKS))


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_python_block_type_checks_as_it_stands(block: Block, checker: str) -> None:
    assert type_errors(checker, block.text) == {}
