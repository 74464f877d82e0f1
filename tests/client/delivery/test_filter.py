"""What a consumer wants."""

from __future__ import annotations

import pytest

from jmsaio.client.delivery.filter import Filter
from jmsaio.client.subscriptions.plan import parse_selector
from jmsaio.errors import InvalidSelectorError
from jmsaio.rules.fate import Fate, Rejection
from jmsaio.selector import Selector
from tests.client.delivery.test_inbox import numbered


def test_why_a_record_is_not_wanted() -> None:
    selecting = Filter(selector=Selector("x = 1"))
    one, other = numbered(1, {"x": "1", "x_jsmtype": "int"}), numbered(2, {"x": "2", "x_jsmtype": "int"})
    assert selecting.rejects(one, 0) is None
    assert selecting.rejects(other, 0) is Rejection.SELECTOR
    assert Filter(is_local=lambda record: True).rejects(one, 0) is Rejection.NO_LOCAL
    assert Filter().rejects(numbered(3, {"JMSExpiration": "5"}), 6) is Rejection.EXPIRED


def test_a_record_expires_at_its_expiration_and_not_before() -> None:
    record = numbered(1, {"JMSExpiration": "5"})
    assert [Filter().rejects(record, now) for now in (4, 5)] == [None, Rejection.EXPIRED]
    assert all(Filter().rejects(numbered(1, {"JMSExpiration": text}), 10) is None for text in ("0", "-5", "soon"))


def test_a_selector_that_fails_on_a_record_or_knows_nothing_of_it_does_not_select_it() -> None:
    failing = Filter(selector=Selector("x = 1 AND y / 0 = 1"))
    for record in (numbered(1), numbered(2, {"x": "1", "x_jsmtype": "int", "y": "1", "y_jsmtype": "int"})):
        assert failing.rejects(record, 0) is Rejection.SELECTOR


def test_what_is_not_local_is_selected_as_ever() -> None:
    filter = Filter(is_local=lambda record: record.message_id.entry == 1)
    assert [filter.rejects(numbered(number), 0) for number in (1, 2)] == [Rejection.NO_LOCAL, None]
    assert filter.concerns_others and not filter.plain


@pytest.mark.parametrize("wrong", [5, b"x", ["x"]])
def test_a_selector_is_a_text(wrong: object) -> None:
    with pytest.raises(InvalidSelectorError, match="is a text, not"):
        parse_selector(wrong)  # type: ignore[arg-type]  # what a caller may do
    assert parse_selector("") is None is parse_selector(None)


def test_whose_rejections_concern_others() -> None:
    selector = Selector("x = 1")
    assert Filter(selector=selector).concerns_others and not Filter(selector=selector).plain
    assert not Filter(selector=selector, shared=False).concerns_others
    assert not Filter().concerns_others and Filter().plain


def test_a_rejected_record_is_given_back_only_where_others_may_want_it() -> None:
    selector = Selector("x = 1")
    fates = {
        Filter(selector=selector): Fate.GIVE_BACK,
        Filter(selector=selector, shared=False): Fate.ACKNOWLEDGE,
        Filter(selector=selector, acknowledge_rejected=True): Fate.ACKNOWLEDGE,
    }
    assert {filter: filter.fate(Rejection.SELECTOR) for filter in fates} == fates
