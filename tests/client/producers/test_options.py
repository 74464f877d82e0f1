"""What type checkers know of a send's keywords is what a send takes."""

from __future__ import annotations

import inspect

from jmsaio import MessageProducer
from jmsaio.client.producers.options import SendOptions


def test_the_keywords_of_send_are_those_that_type_checkers_know() -> None:
    for call in (MessageProducer.send, MessageProducer.send_async):
        keywords = {
            name: each.annotation
            for name, each in inspect.signature(call).parameters.items()
            if each.kind is inspect.Parameter.KEYWORD_ONLY and name != "completion_listener"
        }
        declared = {name: getattr(kind, "__forward_arg__", kind) for name, kind in SendOptions.__annotations__.items()}
        assert keywords == declared
        assert SendOptions.__required_keys__ == frozenset()
