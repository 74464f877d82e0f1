"""What a consumer wants."""

from __future__ import annotations

from jmsaio.client.delivery.filter import Filter
from jmsaio.rules.fate import Rejection
from jmsaio.selector import Selector
from tests.client.delivery.test_inbox import numbered


def test_why_a_record_is_not_wanted() -> None:
    selecting = Filter(selector=Selector("x = 1"))
    one, other = numbered(1, {"x": "1", "x_jsmtype": "int"}), numbered(2, {"x": "2", "x_jsmtype": "int"})
    assert selecting.rejects(one, 0) is None
    assert selecting.rejects(other, 0) is Rejection.SELECTOR
    assert Filter(is_local=lambda record: True).rejects(one, 0) is Rejection.NO_LOCAL
    assert Filter().rejects(numbered(3, {"JMSExpiration": "5"}), 6) is Rejection.EXPIRED


def test_whose_rejections_concern_others() -> None:
    selector = Selector("x = 1")
    assert Filter(selector=selector).concerns_others and not Filter(selector=selector).plain
    assert not Filter(selector=selector, alone=True).concerns_others
    assert not Filter(selector=selector, shared=False).concerns_others
    assert not Filter().concerns_others and Filter().plain
