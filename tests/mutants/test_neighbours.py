"""The tests around a module are found by where they lie and what they import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.neighbours import Neighbours

FILES = {
    "jmsaio/__init__.py": "from jmsaio.client.session import Session\n",
    "jmsaio/client/session.py": "from jmsaio.rules.share import split\n",
    "jmsaio/client/other.py": "from jmsaio.codec import decode\n",
    "jmsaio/codec/__init__.py": "from jmsaio.codec.reading import decode\n",
    "jmsaio/codec/reading.py": "",
    "jmsaio/rules/share.py": "",
    "tests/client/test_session.py": "import jmsaio\n",
    "tests/client/test_other.py": "",
    "tests/contract/conftest.py": "from jmsaio.codec import reading\n",
    "tests/contract/test_all.py": "",
    "tests/rules/test_share.py": "",
    "tests/test_far.py": "from jmsaio.rules.share import split\n",
}


@pytest.fixture
def around(tmp_path: Path) -> Neighbours:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Neighbours(tmp_path)


def test_the_mirrored_tests_are_the_nearest(around: Neighbours) -> None:
    assert around.mirrored(Path("jmsaio/rules/share.py")) == [Path("tests/rules/test_share.py")]
    assert around.mirrored(Path("jmsaio/codec/reading.py")) == []


def test_importers_have_their_mirrored_tests_beside_those_that_import_the_module(around: Neighbours) -> None:
    """The whole package is no neighbour: everything imports it."""
    others = around.others(Path("jmsaio/rules/share.py"))
    assert others == [Path("tests/client/test_session.py"), Path("tests/test_far.py")]


def test_a_package_that_hands_a_module_on_shares_its_neighbours(around: Neighbours) -> None:
    assert Path("tests/client/test_other.py") in around.others(Path("jmsaio/codec/reading.py"))


def test_what_a_conftest_imports_is_tested_by_its_folder(around: Neighbours) -> None:
    assert Path("tests/contract/test_all.py") in around.others(Path("jmsaio/codec/reading.py"))
