"""What is written from the declared options is equal to them: the guide's tables."""

import pathlib

import pytest

from jmsaio.config.declaring import directory
from jmsaio.config.options import Section, Status
from tests.support.scripts import load

option_tables = load(".mkdocs/option_tables.py")

REMEDY = "run python .mkdocs/option_tables.py"


def test_the_guide_has_the_tables_of_the_declared_options() -> None:
    guide = option_tables.GUIDE.read_text(encoding="utf-8")
    written = guide.partition(option_tables.BEGIN)[2].partition(option_tables.END)[0].strip()
    assert written == option_tables.tables(), REMEDY


def test_every_option_is_in_the_tables() -> None:
    text = option_tables.tables()
    for section in Section:
        for option in directory(section).options:
            name = option.key if option.status is Status.BUILT else option.name
            assert f"| `{name}` |" in text


def test_writing_changes_nothing_but_the_generated_part(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide, types = tmp_path / "configuration.md", tmp_path / "connect_options.py"
    guide.write_text(f"before\n{option_tables.BEGIN}\nold\n{option_tables.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(option_tables, "GUIDE", guide)
    monkeypatch.setattr(option_tables, "TYPES", types)
    option_tables.write()
    tables = f"{option_tables.BEGIN}\n\n{option_tables.tables()}\n\n{option_tables.END}"
    assert guide.read_text(encoding="utf-8") == f"before\n{tables}\nafter\n"
    assert types.read_text(encoding="utf-8") == option_tables.connect_options()


@pytest.mark.parametrize(
    "line",
    [
        "| `jms.producerAutoCloseTimeoutSec` | `producer_auto_close` | -1 s |",
        "| `ackTimeoutMillis` | `ack_timeout` | 0 ms |",
        "| `batchingMaxPublishDelayMicros` | `batching_max_publish_delay` | 1000 us |",
        "| `jms.enableClientSideEmulation` | `enable_client_side_emulation` |  |",
        "| `deadLetterPolicy` | `dead_letter` |  |",
        "| `memory_limit` |  | 268435456 bytes | maximum bytes that an embedded broker stores; embedded broker only |",
    ],
)
def test_a_row_has_the_written_default_with_its_unit(line: str) -> None:
    assert line in option_tables.tables()
