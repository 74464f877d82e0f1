"""The house stands: imports point down, nothing goes in circles, libraries stay with their owners, the core is pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support import layers

ROOT = Path(__file__).parents[1]
Check = Callable[[list[layers.Module]], list[str]]
pytestmark = pytest.mark.xdist_group("layers")  # one process reads the package, once
CHECKS: list[Check] = [
    layers.homeless,
    layers.upward,
    layers.trespassing,
    layers.impure,
    layers.cycles,
    layers.package_cycles,
]


@cache
def package() -> list[layers.Module]:
    return layers.read(ROOT)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_rule_of_the_layers_holds(check: Check) -> None:
    modules = package()
    assert len(modules) > 20
    assert check(modules) == []


PLANTED = [
    (layers.homeless, {"utils/a.py": ""}, "no ring"),
    (layers.upward, {"model/a.py": "from jmsaio.client import b", "client/b.py": ""}, "ring 0 imports jmsaio.client.b"),
    (layers.upward, {"model/a.py": "def f():\n  import jmsaio.client.b", "client/b.py": ""}, "a.py:2 ring 0"),
    (layers.upward, {"codec/a.py": "from jmsaio.rules.b import x", "rules/b.py": ""}, "must not know"),
    (layers.upward, {"model/a.py": "from jmsaio import x", "__init__.py": ""}, "ring 0 imports jmsaio of ring 4"),
    (layers.upward, {"client/a.py": "from ..cli.b import x", "cli/b.py": ""}, "ring 3 imports jmsaio.cli.b"),
    (
        layers.upward,
        {"transport/memory/a.py": "from jmsaio.transport.pulsar import b", "transport/pulsar/b.py": ""},
        "must not know",
    ),
    (layers.upward, {"spark/a.py": "from jmsaio.client import b", "client/b.py": ""}, "must not know"),
    (
        layers.upward,
        {"transport/pulsar/wire/a.py": "from ..native import b", "transport/pulsar/native/b.py": ""},
        "must not know",
    ),
    (
        layers.upward,
        {
            "transport/pulsar/sending/a.py": "from jmsaio.transport.pulsar.wire import b",
            "transport/pulsar/wire/b.py": "",
        },
        "a client, into what clients share",
    ),
    (
        layers.upward,
        {"maintenance/a.py": "from jmsaio.transport.pulsar.admin import b", "transport/pulsar/admin/b.py": ""},
        "past the seam",
    ),
    (
        layers.upward,
        {"cli/a.py": "def f():\n  from jmsaio.transport import pulsar", "transport/pulsar/__init__.py": ""},
        "past the seam",
    ),
    (layers.trespassing, {"maintenance/a.py": "import pyspark.sql"}, "belongs to jmsaio.spark"),
    (layers.trespassing, {"client/a.py": "import httpx"}, "belongs to jmsaio.transport.pulsar.admin"),
    (
        layers.trespassing,
        {"transport/memory/a.py": "import pulsar.asyncio"},
        "belongs to jmsaio.transport.pulsar.native",
    ),
    (layers.trespassing, {"transport/pulsar/adminx/a.py": "import httpx"}, "belongs to jmsaio.transport.pulsar.admin"),
    (layers.impure, {"rules/a.py": "from time import monotonic"}, "imports time in ring 1"),
    (layers.impure, {"codec/a.py": "async def f(): ..."}, "a coroutine in ring 1"),
    (layers.cycles, {"client/a.py": "import jmsaio.client.b", "client/b.py": "from jmsaio.client import a"}, "a <-> "),
    (
        layers.cycles,
        {
            "client/a.py": "import jmsaio.client.b",
            "client/b.py": "import jmsaio.client.c",
            "client/c.py": "def f():\n  from jmsaio.client.a import x",
        },
        "jmsaio.client.a <-> jmsaio.client.b <-> jmsaio.client.c",
    ),
]


@pytest.mark.parametrize(("check", "files", "words"), PLANTED)
def test_each_check_finds_what_it_is_for(tmp_path: Path, check: Check, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        path = tmp_path / "jmsaio" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (found,) = check(layers.read(tmp_path))
    assert words in found


def test_imports_for_typing_count(tmp_path: Path) -> None:
    (tmp_path / "jmsaio" / "client").mkdir(parents=True)
    (tmp_path / "jmsaio" / "model").mkdir()
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jmsaio.client.a import A\n"
    (tmp_path / "jmsaio" / "client" / "a.py").write_text("from jmsaio.client import b\n")
    (tmp_path / "jmsaio" / "client" / "b.py").write_text(guarded)
    assert layers.cycles(layers.read(tmp_path)) == ["jmsaio.client.a <-> jmsaio.client.b"]
    (tmp_path / "jmsaio" / "model" / "c.py").write_text(guarded)
    assert len(layers.upward(layers.read(tmp_path))) == 1


def test_packages_have_no_circle_even_where_their_modules_have_none(tmp_path: Path) -> None:
    files = {
        "client/a.py": "from jmsaio.client.senders import b",
        "client/c.py": "",
        "client/senders/b.py": "from jmsaio.client import c",
        "errors.py": "",
        "model/d.py": "from jmsaio import errors",
        "__init__.py": "from jmsaio.client import a",
    }
    for name, text in files.items():
        path = tmp_path / "jmsaio" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    modules = layers.read(tmp_path)
    assert layers.cycles(modules) == []
    assert layers.package_cycles(modules) == ["jmsaio.client <-> jmsaio.client.senders"]
