"""The command as a whole: exit codes, one line for a mistake, no traceback."""

import subprocess
import sys

import pytest

from jmsaio import BrokerUnavailableError, JMSError, __version__
from jmsaio.cli import main
from jmsaio.cli.app import _sentence, app
from jmsaio.cli.send import SendingStopped
from jmsaio.errors import ConfigurationError


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*app.commands, "Exit codes"))
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize("group", [[], ["broker"]])
def test_a_group_alone_prints_its_help(group: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever does not know the commands yet gets them."""
    assert main(group) == 0
    alone = capsys.readouterr()
    assert main([*group, "--help"]) == 0
    assert alone.out == capsys.readouterr().out
    assert alone.err == ""


def test_the_package_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "jmsaio", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"jmsaio, version {__version__}\n"


def test_older_versions_of_click_suffice() -> None:
    """Their ParamType is not generic, and the metavar of an option needs no context."""
    older = "import click; click.ParamType.__class_getitem__ = None; click.Option.make_metavar = lambda self: ''"
    command = "import sys; from jmsaio.cli import main; sys.exit(main(['queues', '-o', 'wrong']))"
    done = subprocess.run([sys.executable, "-c", f"{older}; {command}"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "jmsaio: --option needs NAME=VALUE, not 'wrong' (see 'jmsaio queues --help')\n"


@pytest.mark.parametrize("name", sorted(app.commands))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: jmsaio {name}")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nosuch"], 2, "No such command"),
        (["queus"], 2, "Did you mean 'queues'"),
        (["send"], 2, "DESTINATION"),
        *(
            (command, 2, "is not a finite number")
            for command in (
                ["queues", "--watch", "nan"],
                ["topics", "--watch", "inf"],
                ["receive", "q", "--timeout", "nan"],
                ["send", "q", "x", "--ttl", "inf"],
                ["send", "q", "x", "--delay", "nan"],
                ["sweep", "--idle", "nan"],
                ["sweep", "--watch", "inf"],
                ["broker", "start", "--timeout", "inf"],
                ["broker", "stop", "--timeout", "nan"],
                ["demo", "--pace", "nan"],
                ["spark", "archive", "q", "f", "--interval", "nan"],
            )
        ),
        (["send", "q", "x", "-u", "memory:"], 2, "lives in one process only"),
        (["receive", "q", "-u", "memory://x"], 2, "jmsaio broker start"),
        (["browse", "q"], 2, "no broker is configured"),
        (["send", "q", "x", "-u", "pulsar://h?jms.clientID=x"], 2, "did you mean 'jms.clientId'"),
        (["receive", "q", "-u", "nosuch.toml"], 2, "can't read configuration file"),
        (["receive", "q", "--option", "jms.clientId"], 2, "NAME=VALUE"),
        (["browse", "q", "-t", "-u", "pulsar://h"], 2, "only a queue"),
        (["receive", "q", "--durable", "d", "-u", "pulsar://h"], 2, "add --topic"),
        (["receive", "t", "-t", "--durable", "d", "--shared", "s", "-u", "pulsar://h"], 2, "exclude each other"),
        (["receive", "q", "--all", "--follow", "-u", "pulsar://h"], 2, "exclude each other"),
        (["send", "q", "x", "--lines", "--json-lines", "-u", "pulsar://h"], 2, "exclude each other"),
        (["send", "q", "x", "--lines", "-u", "pulsar://h"], 2, "leave out the bodies"),
        (["send", "q", "{}", "--json-lines", "-u", "pulsar://h"], 2, "leave out the bodies"),
        (["send", "q", "--as", "map", "--json-lines", "-f", __file__, "-u", "pulsar://h"], 2, "leave out --as"),
        (["send", "q", "x", "-p", "a=1", "-p", "a:int=2"], 2, "property 'a' is given twice"),
        (["send", "q", "x", "--priority", "10"], 2, "0<=x<=9"),
        (["send", "q", "-f", "/nonexistent/file"], 2, "No such file"),
        (["guide", "configurations"], 2, "did you mean 'configuration'"),
        (["doctor", "-u", "pulsa://x"], 2, "not a broker URL"),
    ],
)
def test_a_users_mistake_is_one_sentence(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JMSAIO_URL", raising=False)
    assert main(arguments) == code
    output = capsys.readouterr()
    assert words in " ".join(output.err.split())
    assert output.out == ""
    assert "Traceback" not in output.err


LONG = "x" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        [LONG],
        ["guide", LONG],
        ["doctor", "-u", LONG],
        ["browse", "orders", "--count", LONG],
        ["broker", "logs", f"--lines={LONG}"],
        ["broker", "start", "--memory", LONG],
        ["broker", "start", "--option", LONG],
        ["broker", "status", "--dir", LONG],
        ["send", "orders", "--file", f"{LONG}\udcff"],
        ["send", "orders", "text", "--property", LONG],
        ["send", "orders", "text", "--property", f"a:{LONG}=1"],
        ["send", "orders", "text", "--property", f"a:int={LONG}"],
        ["send", "orders", "text", "--priority", LONG],
        ["send", "orders", "text", "--url", LONG],
        ["receive", "orders", "--timeout", LONG],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_a_mistake_quotes_little_of_an_argument(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) in (1, 2)
    told = capsys.readouterr().err
    assert 0 < told.count("x") < 500 and "\udcff" not in told


def test_a_broker_that_is_away_is_one_line_with_advice(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["send", "q", "x", "-u", "pulsar://127.0.0.1:1", "-o", "connect_timeout=1", "-o", "operation_timeout=1"]
    assert main(arguments) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len([line for line in lines if line.startswith("jmsaio: ")]) == 1
    assert "127.0.0.1" in lines[-1] and "jmsaio broker start" in lines[-1]


@pytest.mark.timeout(25)  # without a bound of the command line's own it is half a minute
@pytest.mark.parametrize("place", ["127.0.0.1:1", "nosuch.invalid:6650"])
def test_a_wrong_place_is_told_soon(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A person at the command line does not wait half a minute for what can be told at once."""
    assert main(["receive", "q", "-u", f"pulsar://{place}"]) == 1
    told = capsys.readouterr().err
    assert place in told and "jmsaio broker start" in told


def test_a_mistake_in_a_selector_is_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    """The caret stands below the place that is wrong, and no broker is asked for that."""
    for command in ("receive", "browse"):
        assert main([command, "q", "-s", "amount = = 3", "-u", "pulsar://127.0.0.1:1"]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert lines[0].startswith("jmsaio: selector, column 10: ")
        assert lines[1:] == ["  amount = = 3", "           ^", "(the language: 'jmsaio guide selectors')"]


def test_debug_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    """As the value of an option it is that."""
    arguments = ["receive", "q", "-u", "pulsar://h?nosuch=1"]
    assert main(["--debug", *arguments]) == 2
    assert "Traceback" in capsys.readouterr().err
    assert main([*arguments, "-s", "--debug"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_errors_keep_their_text_and_say_what_to_do() -> None:
    assert _sentence(JMSError("a\n  b\n")) == "a\n  b"
    assert _sentence(BrokerUnavailableError("a\nb")).startswith("a\nb\n(is a broker running there?")
    assert _sentence(ConfigurationError("a")).endswith("(all options: 'jmsaio guide configuration')")
    assert "jmsaio broker start" in _sentence(BrokerUnavailableError("gone"))
    stopped = SendingStopped("2 sent, 1 failed")
    stopped.__cause__ = BrokerUnavailableError("gone")
    assert "jmsaio broker start" in _sentence(stopped)
    assert "bug in jmsaio" in _sentence(KeyError("x"))


def test_the_process_ends_with_the_code_and_imports_no_command_line_library_before() -> None:
    code = "import sys, jmsaio; print(sorted({'click', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = "import sys; from jmsaio.cli import main; sys.exit(main(['guide', 'nosuch-at-all']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there are contents, tutorial" in " ".join(done.stderr.split())
