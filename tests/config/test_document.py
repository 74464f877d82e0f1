"""The guide's option tables are the code's."""

from importlib import resources

from jmsaio.config.document import BEGIN, END, tables
from jmsaio.config.options import Status
from jmsaio.config.table import CONNECTION
from jmsaio.config.table_streams import CONSUMER, PRODUCER


def test_the_guide_has_the_tables_of_the_code() -> None:
    guide = resources.files("jmsaio").joinpath("guide/configuration.md").read_text(encoding="utf-8")
    written = guide.partition(BEGIN)[2].partition(END)[0].strip()
    assert written == tables(), "put the output of jmsaio.config.document.tables() between the two marks of the guide"


def test_every_option_is_in_the_tables() -> None:
    text = tables()
    for option in (*CONNECTION, *PRODUCER, *CONSUMER):
        name = option.key if option.status is Status.BUILT else option.name
        assert f"| `{name}` |" in text
