"""Public names: presented as names of ``jmsaio``, without the arguments that only the library passes."""

from __future__ import annotations

import inspect
import pydoc

import attrs

from jmsaio.model.public import created_by, public


@public
@created_by("factory.create_thing")
@attrs.define
class Thing:
    """A thing."""

    inner: int


def test_the_module_is_the_package() -> None:
    assert (Thing.__module__, Thing.__qualname__) == ("jmsaio", "Thing")


def test_the_library_creates_it_with_its_arguments() -> None:
    assert Thing(5).inner == 5


def test_help_shows_no_arguments_and_the_call_that_creates_it() -> None:
    shown = pydoc.plain(pydoc.render_doc(Thing))
    assert "inner:" not in shown and not inspect.signature(Thing).parameters
    assert "Not for applications, which call factory.create_thing." in shown
