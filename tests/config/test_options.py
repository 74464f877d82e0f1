"""Options, their lookup, and single values in the option's unit or in seconds."""

from datetime import timedelta

import pytest

from jmsaio.config import load
from jmsaio.config.options import Directory, Kind, Option, Section, given, nearest, refuse, written
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
    assert Option("a", Section.CONNECTION, Kind.TEXT).name == "a"


MICROS = Option("x.micros", Section.CONNECTION, Kind.DURATION, 0.001, "micros", unit="us")
OFF = Option("x.off", Section.CONNECTION, Kind.DURATION, None, "off", unit="ms", off=0)
COUNT = Option("x.count", Section.CONNECTION, Kind.INTEGER, 1, "count", low=1)
RATIO = Option("x.ratio", Section.CONNECTION, Kind.NUMBER, 2.0, "ratio", low=1)
FLAG = Option("x.flag", Section.CONNECTION, Kind.FLAG, False, "flag")
NAME = Option("x.name", Section.CONNECTION, Kind.TEXT, None, "name")
EXACT = Option("x.exact", Section.CONNECTION, Kind.CHOICE, "a", "exact", choices=("a", "B"), exact=True)
PASSWORD = Option("x.password", Section.CONNECTION, Kind.SECRET, None, "password", low=1)


def test_durations_are_seconds_whatever_unit_they_are_written_in() -> None:
    assert written(MICROS, "250") == 0.00025
    assert given(MICROS, 0.5) == 0.5
    assert given(MICROS, timedelta(microseconds=7)) == 0.000007
    assert written(OFF, "0") is None and given(OFF, None) is None and written(OFF, 5) == 0.005


@pytest.mark.parametrize("value", ["", "five", "inf", "nan", "-1", True, [1], None])
def test_what_is_not_a_duration_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"x\.micros"):
        given(MICROS, value)


def test_numbers_and_choices() -> None:
    assert written(COUNT, "5") == written(COUNT, 5) == written(COUNT, 5.0) == 5
    assert written(RATIO, "1.5") == 1.5
    assert written(EXACT, "B") == "B"
    for option, value in ((COUNT, "0"), (COUNT, 1.5), (COUNT, False), (RATIO, 0), (EXACT, "b"), (COUNT, "")):
        with pytest.raises(ConfigurationError, match="option x"):
            written(option, value)


def test_flags_take_true_and_false_and_refuse_everything_else() -> None:
    """A flag says true or false, else it is refused by name, also for hostname verification."""
    assert written(FLAG, "True") is given(FLAG, True) is True
    assert written(FLAG, "false") is given(FLAG, False) is False
    for value in ("yes", "1", 1, "", None):
        with pytest.raises(ConfigurationError, match=r"option x\.flag"):
            written(FLAG, value)
    with pytest.raises(ConfigurationError, match="tlsEnableHostnameVerification = 'yes': must be true or false"):
        load("pulsar+ssl://h?tlsEnableHostnameVerification=yes")


def test_text_is_a_string_and_an_empty_one_is_not_set() -> None:
    assert written(NAME, "") is None  # empty is Starlight's "not set"
    assert written(NAME, 5) == "5"
    assert written(NAME, True) == "true"
    with pytest.raises(ConfigurationError, match="not bytes"):
        written(NAME, b"x")


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.FLAG, Kind.DURATION, Kind.INTEGER, Kind.NUMBER])
def test_a_number_that_python_can_not_write(kind: Kind) -> None:
    """It is refused by the option's name, as any other one."""
    with pytest.raises(ConfigurationError, match=r"option x\.y.*(too large|at most|must be)"):
        given(Option("x.y", Section.CONNECTION, kind, None, "y"), 10**6000)


def test_a_secrets_value_is_never_in_a_refusal() -> None:
    assert "hidden" not in str(refuse(PASSWORD, "hidden", "no"))


@pytest.mark.parametrize(("unit", "most"), [("", 2**31 - 1), ("bytes", 2**40)])
def test_numbers_are_bounded(unit: str, most: int) -> None:
    """A number above its bound is refused."""
    option = Option("x.size", Section.CONNECTION, Kind.INTEGER, 1, "size", unit=unit)
    assert given(option, most) == most
    for value in (most + 1, 10**30, str(10**30)):
        with pytest.raises(ConfigurationError, match=r"x\.size: must be at most"):
            given(option, value)
    bounded = Option("x.few", Section.CONNECTION, Kind.INTEGER, 1, "few", high=5)
    assert given(bounded, 5) == 5
    with pytest.raises(ConfigurationError, match="at most 5"):
        given(bounded, 6)


def test_a_list_is_one_of_texts_whatever_its_order() -> None:
    names = Option("x.names", Section.CONNECTION, Kind.LIST, None, "names")
    assert written(names, ["b", "a"]) == given(names, {"a", "b"}) == written(names, "b,a") == ("a", "b")
    assert written(names, "") is written(names, []) is None
    for value in (5, {"a": "b"}, [["a"]]):
        with pytest.raises(ConfigurationError, match=r"option x\.names"):
            written(names, value)
