"""The examples with Spark in the README and the guide run as they stand, one after another, and type-check."""

from __future__ import annotations

import itertools
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from jmsaio.cli import main
from tests.kit.type_checkers import CHECKERS, MARKS, declare, type_errors
from tests.support.broker import TestBroker
from tests.support.documents import Block, all_blocks, commands

BLOCKS = [block for block in all_blocks("python") if block.needs_spark]
URL = "pulsar://localhost:6650"
declare(*(block.text for block in BLOCKS))


def whole(blocks: Iterable[Block]) -> list[Block]:
    """The executed blocks that no other continues: each runs with all that it continues."""
    executed = [block for block in blocks if block.executed]
    ends = [one for one, other in itertools.pairwise(executed) if not other.text.startswith(one.text)]
    return ends + executed[-1:]


def send_as_documented(document: Path) -> int:
    """Run the commands of a document that send; returns their number."""
    shells = [block for block in all_blocks("console") if block.path == document]
    sending = [words for block in shells for words in commands(block) if words[0] == "send"]
    assert [main(words) for words in sending] == [0] * len(sending)
    return len(sending)


@pytest.mark.parametrize("block", whole(BLOCKS), ids=lambda block: block.path.name)
def test_the_examples_of_a_document_run_as_pasted(
    block: Block,
    spark: SparkSession,
    pulsar_broker: TestBroker,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    namespace = f"public/{uuid.uuid4().hex[:12]}"
    httpx.put(f"{pulsar_broker.web_service_url}/admin/v2/namespaces/{namespace}", timeout=30).raise_for_status()
    url = f"{pulsar_broker.url}&jms.systemNamespace={namespace}"
    monkeypatch.setenv("JMSAIO_URL", url)
    assert send_as_documented(block.path) > 0
    exec(compile(block.text.replace(URL, url), str(block), "exec", dont_inherit=True), {"__name__": "__main__"})


@pytest.mark.parametrize("block", [block for block in BLOCKS if not block.executed], ids=str)
def test_an_example_that_is_not_run_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec", dont_inherit=True)


def test_examples_of_each_document_are_found() -> None:
    names = ["README.md", "spark-kafka.md", "spark-operation.md", "spark-tutorial.md", "spark.md"]
    assert [block.path.name for block in whole(BLOCKS)] == names


class TestTypes:
    pytestmark = MARKS

    @pytest.mark.parametrize("checker", CHECKERS)
    @pytest.mark.parametrize("block", BLOCKS, ids=str)
    def test_an_example_type_checks_as_it_stands(self, block: Block, checker: str) -> None:
        assert type_errors(checker, block.text) == {}
