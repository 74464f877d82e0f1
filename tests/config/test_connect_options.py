"""The keyword types of ``connect``: equal to the declared options, and of use to a type checker."""

from typing import Any, get_args, get_type_hints

import pytest

from jmsaio.config import Configuration, ConnectOptions, ConsumerConfig, FactoryOptions, ProducerConfig, load
from jmsaio.config.declaring import groups
from jmsaio.config.loading import KEYWORDS
from jmsaio.config.options import Option, Status
from jmsaio.errors import ConfigurationError
from jmsaio.model.durations import Duration
from tests.kit.type_checkers import CHECKERS, MARKS, declare, type_errors
from tests.support import scripts

option_tables = scripts.load(".mkdocs/option_tables.py")

HEAD = """\
from datetime import timedelta

from jmsaio import ConnectionFactory, connect
from jmsaio.config import ConnectOptions, ConsumerConfig, DeadLetterPolicy, load

"""
RIGHT = """\
connect("memory:", client_id="c", user="u", send_timeout=10, close_timeout=timedelta(seconds=1), ack_timeout=None)
connect(producer={"batching_enabled": False}, dead_letter=DeadLetterPolicy(max_redeliver_count=3))
ConnectionFactory({"jms.clientId": "c"}, client_id=None, acknowledge_scope="group", consumer=ConsumerConfig())
load("memory:", environ={}, client_id="c", io_threads=2)
options: ConnectOptions = {"send_timeout": 1.5}
connect("memory:", **options)
"""
WRONG = {
    "connect(sned_timeout=1)": "sned_timeout",
    'connect(send_timeout="soon")': "send_timeout",
    'connect(auto_start="yes")': "auto_start",
    'connect(acknowledge_scope="all")': "acknowledge_scope",
    "connect(dead_letter=3)": "dead_letter",
    "ConnectionFactory(clientid=None)": "clientid",
    "ConnectionFactory(client_id=5)": "client_id",
    'load("memory:", close_timeout=None)': "close_timeout",
    "ConsumerConfig(receiver_queue_size=None)": "receiver_queue_size",
    "DeadLetterPolicy()": "max_redeliver_count",
}
MISTAKES = HEAD + "".join(f"{call}\n" for call in WRONG)
declare(HEAD + RIGHT, MISTAKES)


def test_the_keyword_types_are_written_from_the_declared_options() -> None:
    remedy = "run python .mkdocs/option_tables.py"
    assert option_tables.TYPES.read_text(encoding="utf-8") == option_tables.connect_options(), remedy


def test_each_keyword_that_is_built_has_a_type_and_no_other_name_has() -> None:
    built = {name for name, each in KEYWORDS.items() if not isinstance(each, Option) or each.status is Status.BUILT}
    assert set(FactoryOptions.__annotations__) == built
    assert set(FactoryOptions.__annotations__) - set(ConnectOptions.__annotations__) == {"client_id"}
    assert FactoryOptions.__required_keys__ == set()


@pytest.mark.parametrize("holder", [Configuration, ProducerConfig, ConsumerConfig])
def test_a_keyword_has_its_fields_type_and_a_duration_may_be_a_timedelta(holder: type) -> None:
    types = get_type_hints(FactoryOptions)
    fields = {name: each for name, each in get_type_hints(holder).items() if name in types}
    for name in fields.keys() - groups(holder).keys():
        of_field = set(get_args(fields[name]) or [fields[name]])
        if float in of_field:
            of_field |= set(get_args(Duration))
        assert set(get_args(types[name]) or [types[name]]) == of_field, name


@pytest.mark.parametrize("checker", CHECKERS)
class TestChecker:
    pytestmark = MARKS

    def test_each_keyword_takes_the_values_of_its_type(self, checker: str) -> None:
        assert type_errors(checker, HEAD + RIGHT) == {}

    @pytest.mark.parametrize("call", WRONG)
    def test_a_misspelt_keyword_or_a_wrong_value_is_an_error_that_names_it(self, call: str, checker: str) -> None:
        (error,) = type_errors(checker, MISTAKES)[HEAD.count("\n") + 1 + list(WRONG).index(call)]
        assert WRONG[call] in error


@pytest.mark.parametrize("name", sorted(FactoryOptions.__annotations__))
def test_each_typed_keyword_is_known_and_refuses_a_value_of_no_use(name: str) -> None:
    wrong: dict[str, Any] = {name: object()}
    with pytest.raises(ConfigurationError) as caught:
        load("memory:", **wrong)
    assert "unknown option" not in str(caught.value)
