"""Finding options by name, and the nearest name for a misspelt one."""

import pytest

from jmsaio.config.options import Directory, Kind, Option, Section, nearest
from jmsaio.errors import ConfigurationError

OPTION = Option("jms.clientId", Section.CONNECTION, Kind.TEXT, None, "client_id")


def test_found_by_written_name_and_by_field() -> None:
    directory = Directory([OPTION])
    assert directory.find("jms.clientId") == (OPTION, False)
    assert directory.find("client_id") == (OPTION, True)
    with pytest.raises(ConfigurationError, match=r"unknown option 'jms\.client'; did you mean 'jms\.clientId'"):
        directory.find("jms.client")


@pytest.mark.parametrize(
    ("name", "answer"),
    [("JMS.CLIENTID", "jms.clientId"), ("clientId", "jms.clientId"), ("jms.clinetId", "jms.clientId"), ("zzz", "")],
)
def test_an_unknown_name_suggests_the_nearest_option(name: str, answer: str) -> None:
    hint = nearest(name, ["jms.clientId", "other"])
    assert hint == (f"; did you mean {answer!r}?" if answer else "")


def test_written_name_has_the_sections_prefix() -> None:
    assert Option("a", Section.CONSUMER, Kind.TEXT).name == "consumerConfig.a"
    assert Option("a", Section.CLIENT, Kind.TEXT).name == "a"
