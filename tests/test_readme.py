"""The README and the guides tell the truth: their Python runs, their commands exist, their links lead somewhere."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from jmsaio.cli import main
from jmsaio.cli.app import app
from jmsaio.launcher import tools
from tests.support.broker import TestBroker
from tests.support.documents import Block, all_blocks, blocks, commands, documents, links
from tests.support.issuer import AUDIENCE, CLIENT, SECRET, Issuer
from tests.support.secure import PASSWORD, OAuthBroker, SecureBroker

#: Seconds that one block or command may take.
TIME_LIMIT = 60
#: The broker of the security guide.
SECURE = "pulsar+ssl://broker.example:6651"
#: Commands that change nothing outside this process; all others are compared with their help text only.
HARMLESS = (["demo"], ["guide"], ["--version"], ["--help"])


def names_a_broker(block: Block) -> bool:
    """Whether a block that is executed has a broker's URL in a string; in a comment it does not count."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(block.text, str(block), "exec", flags=flags, dont_inherit=True)
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return block.executed and any("pulsar://" in text or SECURE in text for text in strings)


def at_broker(source: str, broker: TestBroker) -> str:
    """A block with the addresses of the broker of the tests."""
    for host in ("localhost", "127.0.0.1"):
        source = source.replace(f"pulsar://{host}:6650", broker.service_url)
    return source.replace("http://localhost:8080", broker.web_service_url)


def secured(source: str, request: pytest.FixtureRequest) -> str:
    """A block of the security guide with the addresses, files and secrets of the brokers of the tests."""
    broker: SecureBroker = request.getfixturevalue("secure_broker")
    folder = broker.authority.parent
    real = {
        "/run/secrets/jms.token": str(broker.token_file()),
        "/run/secrets/client": str(folder / "app"),
        "/etc/ssl/pulsar-ca.pem": str(broker.authority),
        "the password": PASSWORD,
    }
    if "oauth2" in source:
        oauth: OAuthBroker = request.getfixturevalue("oauth_broker")
        issuer: Issuer = request.getfixturevalue("issuer")
        key = oauth.key.with_name("client.json")
        key.write_text(json.dumps({"client_id": CLIENT, "client_secret": SECRET}))
        real |= {"https://login.example": issuer.url, "/run/secrets/client.json": str(key), "urn:pulsar": AUDIENCE}
        real |= {SECURE: oauth.service_url, "https://broker.example:8443": oauth.web_service_url}
    real = {SECURE: broker.tls_url, "https://broker.example:8443": broker.tls_web_url} | real
    for name in sorted(real, key=len, reverse=True):
        source = source.replace(name, real[name])
    return source


def examples() -> list[object]:
    """Each Python block; `tests/spark` has those with Spark.

    Blocks that name a broker's URL need the real one, those that name the security guide's need others, too.
    """
    found: list[object] = []
    for block in all_blocks("python"):
        marks = [pytest.mark.broker] if names_a_broker(block) else []
        marks += [pytest.mark.slow] if SECURE in block.text else []
        if not block.needs_spark:
            found.append(pytest.param(block, id=str(block), marks=marks))
    return found


def shell_commands() -> list[object]:
    """Each ``jmsaio`` command in a shell block."""
    return [
        pytest.param(words, id=f"{block}:{' '.join(words)}")
        for block in all_blocks("bash", "sh", "console")
        for words in commands(block)
    ]


def jmsaio(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import sys; from jmsaio.cli import main; sys.argv[0] = 'jmsaio'; main()", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )


def execute(source: str, name: str) -> None:
    """Run a block as a script of its own; it may await at the top level."""
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, {"__name__": "__main__"})
    if inspect.iscoroutine(result):
        asyncio.run(asyncio.wait_for(result, TIME_LIMIT))


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_document_is_there_and_its_links_lead_somewhere(path: Path) -> None:
    for target in links(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("block", examples())
def test_each_python_block_runs_as_pasted(
    block: Block, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JMSAIO_URL", raising=False)
    source = block.text
    if not block.executed:
        compile(source, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        return
    if names_a_broker(block):
        source = at_broker(source, request.getfixturevalue("pulsar_broker"))
    if SECURE in source:
        source = secured(source, request)
    execute(source, str(block))


@pytest.mark.parametrize("block", all_blocks("java"), ids=str)
def test_each_java_block_compiles(block: Block, javac: Callable[..., Path], tmp_path: Path) -> None:
    [name] = re.findall(r"^public class (\w+)", block.text, re.MULTILINE)
    source = tmp_path / f"{name}.java"
    source.write_text(block.text, encoding="utf-8")
    assert (javac([source]) / f"{name}.class").exists()


@pytest.mark.broker
@pytest.mark.java
@pytest.mark.parametrize("block", all_blocks("java"), ids=str)
def test_each_java_block_and_the_python_one_after_it_share_a_broker(
    block: Block, java_classpath: str, pulsar_broker: TestBroker, tmp_path: Path
) -> None:
    """Java's runs first, and Python resumes its durable subscription."""
    python = next(each for each in all_blocks("python") if each.path == block.path and each.line > block.line)
    name = f'"orders-{uuid.uuid4()}"'  # other blocks use these as well
    java, python_text = (at_broker(each.text.replace('"orders"', name), pulsar_broker) for each in (block, python))
    source = tmp_path / "Service.java"
    source.write_text(java, encoding="utf-8")
    command = [str(tools.find("java")), "-cp", java_classpath, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    execute(python_text, str(python))


def command_of(words: list[str]) -> list[str]:
    """The words that name a command, with the groups that it is in."""
    found: click.Command = app
    names = []
    for word in words:
        if not isinstance(found, click.Group) or word not in found.commands:
            break
        found = found.commands[word]
        names.append(word)
    return names


@pytest.mark.parametrize("words", shell_commands())
def test_command_exists_with_its_options(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    if any(words[: len(start)] == start for start in HARMLESS):
        done = jmsaio(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        return
    names = command_of(words)
    assert names, f"{words[0]} is not a command"
    assert main([*names, "--help"]) == 0
    helped = capsys.readouterr().out
    for word in words:
        if word.startswith("-") and not word.lstrip("-")[:1].isdigit():
            assert word.split("=")[0] in helped.replace(",", " ").split(), f"{word} is not an option"


def test_blocks_are_found() -> None:
    text = "a\n```python\nx = 1\n```\n<!-- continues -->\n```python\ny = x\n```\n"
    text += "<!-- not executed: slow -->\n```python\nz\n```\n"
    first, second, third = blocks(Path("d.md"), text)
    assert (first.line, first.language, first.text, first.executed) == (3, "python", "x = 1\n", True)
    assert second.text == "x = 1\ny = x\n"
    assert not third.executed
    with pytest.raises(ValueError, match=r"d\.md:1 block is not closed"):
        list(blocks(Path("d.md"), "```python\nx\n"))


def test_a_block_continues_the_executed_one_of_its_language_before_it() -> None:
    text = "```python\nx\n```\n<!-- not executed: slow -->\n```python\ny\n```\n```console\n$ w\n```\n"
    text += "<!-- continues -->\n```python\nz\n```\n"
    assert [block.text for block in blocks(Path("d.md"), text)] == ["x\n", "y\n", "$ w\n", "x\nz\n"]


def test_commands_are_found() -> None:
    text = "$ pip install . && jmsaio demo\njmsaio send q 'a b' \\\n  -p n:int=5 | cat  # text\n"
    text += "jmsaio receive q > file\n"
    assert commands(Block(Path("d.md"), 1, "bash", text)) == [
        ["demo"],
        ["send", "q", "a b", "-p", "n:int=5"],
        ["receive", "q"],
    ]


def test_links_are_found() -> None:
    assert links("[a](x.md#y) [b](https://c.d) [e](#f)\n```\n[g](h)\n```\n") == ["x.md"]


def test_a_block_that_awaits_runs() -> None:
    seen = "import asyncio\nawait asyncio.sleep(0)\nassert __name__ == '__main__'\n"
    execute(seen, "x")
    with pytest.raises(ZeroDivisionError):
        execute("await __import__('asyncio').sleep(0)\n1 / 0\n", "x")
