"""The tour: every chapter plays, says what it promises, and shows the source that runs."""

import asyncio
import textwrap

import pytest

from jmsaio.demo import CHAPTERS, Chapter, Say, tour


async def play(chapters: tuple[Chapter, ...] = CHAPTERS) -> dict[str, list[str]]:
    """Return what each chapter said, by its title."""
    said: dict[str, list[str]] = {}

    async def show(number: int, chapter: Chapter) -> Say:
        lines = said[chapter.title] = []

        async def say(text: str) -> None:
            lines.append(text)

        return say

    await tour(show, chapters)
    return said


#: What must be among the lines of a chapter.
PROMISES = {
    "Typed properties": ["shelf = Short(12)", "amount as a long is 5", "amount as a string is '5'",
                         "amount as a boolean is refused"],
    "Selectors": ["Europe gets '2 kg to EU'", "Europe gets '7 kg to EU'",
                  "heavy gets '9 kg to US'"],
    "A browser": ["first look: ", "second look: "],
    "A durable subscription": ["at home: \"Monday's news\"", "letter box: \"Tuesday's news\"",
                               "letter box: \"Wednesday's news\""],
    "Redelivery and a dead letter": ["delivery 1, redelivered: False", "delivery 2, redelivered: True",
                                     "dead letter: '12 pounds to no one'"],
    "A transaction": ["redelivered: False; two", "rollback: the bookings are []", "redelivered: True; two",
                      "commit: the bookings are ['Ann -5', 'Bob +5']"],
}  # fmt: skip


async def test_the_tour_plays_and_shows_what_it_promises() -> None:
    said = await play()
    assert list(said) == list(PROMISES)
    for title, promises in PROMISES.items():
        lines = said[title]
        assert all(any(promise in line for line in lines) for promise in promises), (title, lines)
    first, second = said["A browser"]
    assert first.removeprefix("first look: ") == second.removeprefix("second look: ")
    assert "1 kg to US" in first and "somewhere" in first


async def test_two_tours_at_once_do_not_meet() -> None:
    one, two = await asyncio.gather(play(CHAPTERS[:3]), play(CHAPTERS[:3]))
    assert one["A browser"] == two["A browser"]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.title)
def test_the_source_that_is_shown_is_the_source_that_runs(chapter: Chapter) -> None:
    assert chapter.text
    assert chapter.code.startswith("async with")
    assert '"""' not in chapter.code
    body = textwrap.indent(chapter.code, "    ")
    compile(f"async def shown(connection, say):\n{body}\n", chapter.title, "exec")
