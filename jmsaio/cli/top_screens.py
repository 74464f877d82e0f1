"""The screens of ``jmsaio top``: all destinations, one destination, its messages, one message."""

from __future__ import annotations

import asyncio
import signal
import time
from abc import abstractmethod
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final, cast

import attrs
from rich.console import Group, RenderableType
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import DataTable, Footer, Input, Static
from textual.worker import Worker, WorkerState

from jmsaio.cli.common.output import ERROR, INTERRUPTED, OK, fitting, not_shown, printable
from jmsaio.cli.receive import browse_each
from jmsaio.cli.show import to_row, to_text
from jmsaio.cli.states import BATCHES, COLUMNS, MESSAGES, TEXTS, detail_of, lines_of, order_of, table_of
from jmsaio.config import Configuration
from jmsaio.errors import JMSError
from jmsaio.maintenance.overview import DestinationState, list_states, read_states
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.messages.message import Message
from jmsaio.transport.base import Admin

#: Seconds after which a broker that has not answered is reported.
_SLOW: Final = 5.0
#: Maximum number of destinations shown; more rows would delay every key.
_ROWS: Final = 200
#: Index of the column by which the destinations are sorted at first.
_BACKLOG: Final = [name for name, _ in COLUMNS].index("backlog")
#: Columns of the terminal that a table leaves free: its margins and the scroll bar.
_EDGES: Final = 4
#: Maximum number of messages shown of a queue.
_MESSAGES: Final = 100
#: Maximum number of characters shown of a message.
_CHARACTERS: Final = 100_000


@attrs.frozen
class WatchedBroker:
    """The broker to watch: its administration, and its configuration, as given and loaded.

    Attributes:
        every: seconds between two updates.
    """

    admin: Admin
    source: dict[str, object] = attrs.field(repr=False)
    config: Configuration
    every: float


class Top(App[int]):
    """The application."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    .status { height: 1; background: $panel; }
    .status.failed { background: $error; }
    DataTable { height: 1fr; }
    Input { display: none; border: none; height: 1; }
    .note { display: none; height: auto; }
    Input.shown, .note.shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
    ]

    def __init__(self, broker: WatchedBroker, first: Sequence[DestinationState]) -> None:
        """Show ``first`` until the first update."""
        super().__init__()
        self._broker = broker
        self._first = first
        self._failure: BaseException | None = None

    async def run_to_end(self) -> int:
        """Run until a key or a signal ends it; return the exit code."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # on Windows
            loop.add_signal_handler(signal.SIGINT, self.action_interrupt)  # textual can swallow asyncio's cancellation
        try:
            code = await self.run_async()
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)
        if self._failure is not None:
            raise self._failure
        return INTERRUPTED if code is None else code

    def fail(self, error: BaseException) -> None:
        """End with an error, which ``run_to_end`` raises; textual would show it with the values of all variables."""
        self._failure = error
        self.exit(ERROR)

    def on_mount(self) -> None:
        self.push_screen(Destinations(self._broker, self._first))

    async def action_quit(self) -> None:
        self.exit(OK)

    def action_interrupt(self) -> None:
        self.exit(INTERRUPTED)


class _Table(DataTable[Text]):
    """Rows of text with a cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open"),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(cursor_type="row")

    def fill(self, rows: Iterable[tuple[str, Sequence[Text]]]) -> None:
        """Replace the rows, each with its key; cursor and position stay with the key of the cursor's row."""
        key = None if self.row_count == 0 else self.ordered_rows[self.cursor_row].key
        top = self.scroll_y
        self.clear()
        for name, cells in rows:
            self.add_row(*cells, key=name)
        if key in self.rows:
            self.move_cursor(row=self.get_row_index(key), scroll=False)
        self.call_after_refresh(partial(self.scroll_to, y=top, animate=False))

    @property
    def chosen(self) -> str | None:
        """Key of the row with the cursor; None if there are no rows."""
        return self.ordered_rows[self.cursor_row].key.value if self.row_count else None


class _Page(VerticalScroll):
    """A text that can be scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
    ]

    def __init__(self) -> None:
        self._text = Static(markup=False)
        super().__init__(self._text)

    def write(self, *parts: RenderableType) -> None:
        """Replace the text."""
        self._text.update(Group(*parts))


class _DetailScreen(Screen[None]):
    """A screen with a line of status, ``parts``, and the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,backspace", "back", "Back")]

    def __init__(self, *parts: Widget) -> None:
        super().__init__()
        self._status = Static(classes="status", markup=False)
        self._parts = parts

    def compose(self) -> ComposeResult:
        yield self._status
        yield from self._parts
        yield Footer()

    def work(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until the screen is closed."""
        self.run_worker(work, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker.error is not None and event.state is WorkerState.ERROR:
            cast(Top, self.app).fail(event.worker.error)

    def status(self, text: str, failed: bool = False) -> None:
        """Set the status."""
        self._status.update(Text(printable(text), no_wrap=True, overflow="ellipsis"))
        self._status.set_class(failed, "failed")

    def action_back(self) -> None:
        self.dismiss()


class _Updated(_DetailScreen):
    """A screen of states that are requested again and again while it is on top."""

    def __init__(self, broker: WatchedBroker, *parts: Widget) -> None:
        super().__init__(*parts)
        self._broker = broker

    def on_mount(self) -> None:
        self.work(self._update())

    @abstractmethod
    async def read(self) -> Sequence[DestinationState]:
        """Request the states."""

    @abstractmethod
    def show(self, states: Sequence[DestinationState]) -> None:
        """Show the states, and when they were read."""

    async def _update(self) -> None:
        while True:
            if self.is_current:
                await self._update_once()
            await asyncio.sleep(self._broker.every)

    async def _update_once(self) -> None:
        """Show the current states, or why there are none; the broker is asked again later."""
        began, reading = time.monotonic(), asyncio.ensure_future(self.read())
        try:
            while not (await asyncio.wait({reading}, timeout=1))[0]:
                if (waited := time.monotonic() - began) >= _SLOW:
                    self.status(f"{self._broker.admin.address}: no answer for {waited:.0f} s", failed=True)
            self.show(reading.result())
        except JMSError as error:
            self.status(f"{error}; trying again", failed=True)
        finally:
            reading.cancel()


class Destinations(_Updated):
    """All queues and topics, one row for each subscription."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "browse", "Messages"),
        Binding("s", "sort", "Sort"),
        # Before the focused widget: a key that follows at once is meant for the widget that is focused then.
        Binding("slash", "filter", "Filter", priority=True),
        Binding("enter", "leave_filter", show=False, priority=True),
        Binding("escape,backspace", "back", "All", show=False),
    ]

    def __init__(self, broker: WatchedBroker, first: Sequence[DestinationState]) -> None:
        self._filter, self._table = Input(placeholder="part of a name"), _Table()
        self._left_out = Static(classes="note", markup=False)
        super().__init__(broker, self._filter, self._table, self._left_out)
        self._states = {_key(state): state for state in first}
        self._sorted_by = _BACKLOG
        self._columns: list[int] = []

    def on_mount(self) -> None:
        self._table.focus()
        self._fill()
        super().on_mount()

    def on_resize(self) -> None:
        self._fill()

    async def read(self) -> Sequence[DestinationState]:
        return await list_states(self._broker.admin, self._broker.config)

    def show(self, states: Sequence[DestinationState]) -> None:
        self._states = {_key(state): state for state in states}
        self._fill()

    def _fill(self) -> None:
        part = self._filter.value.lower()
        chosen = [(key, state) for key, state in self._states.items() if part in state.name.lower()]
        rows = sorted(chosen, key=self._order)[:_ROWS]
        states = [state for _, state in rows]
        head, *lines = lines_of(states, BATCHES)
        name = head[self._sorted_by]
        head[self._sorted_by] += " *"
        order = order_of(states)
        columns = fitting([head, *lines], order, self.app.size.width - _EDGES)
        if columns != self._columns:
            self._columns = columns
            self._table.clear(columns=True)
        if not self._table.columns:
            for index in columns:
                self._table.add_column(_cell(index, head[index]))
        self._table.fill(
            (key, [_cell(index, line[index]) for index in columns]) for (key, _), line in zip(rows, lines, strict=True)
        )
        left_out = [head[index] for index in order if index not in columns]
        self._left_out.update(not_shown(left_out))
        self._left_out.set_class(bool(left_out), "shown")
        first = f"the first {_ROWS} of " if len(rows) < len(chosen) else ""
        shown = f"{first}{len(chosen)} of {len(self._states)}" + (f" with {part!r}" if part else "")
        self.status(f"{self._broker.admin.address}  {time.strftime('%H:%M:%S')}  {shown}, by {name}")

    def _order(self, row: tuple[str, DestinationState]) -> tuple[Any, ...]:
        """Order texts upwards, numbers downwards, and unknown values last; equal ones by name."""
        name, value = COLUMNS[self._sorted_by]
        found = value(row[1])
        if found is None:
            return True, row[0]
        return False, found if name in TEXTS else -found, row[0]

    def on_input_changed(self) -> None:
        self._fill()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("filter", "leave_filter"):
            return (self.focused is self._filter) == (action == "leave_filter")
        return super().check_action(action, parameters)

    def on_data_table_row_selected(self) -> None:
        if (state := self._chosen()) is not None:
            self.app.push_screen(Detail(self._broker, _destination(self._broker, state)))

    def action_browse(self) -> None:
        if (state := self._chosen()) is not None:
            _browse(self, self._broker, _destination(self._broker, state))

    def action_sort(self) -> None:
        later = [index for index in self._columns if index > self._sorted_by]
        self._sorted_by = (later or self._columns)[0]
        self._table.clear(columns=True)
        self._fill()

    def action_filter(self) -> None:
        self._filter.add_class("shown")
        self.set_focus(self._filter)

    def action_leave_filter(self) -> None:
        self.set_focus(self._table)

    def action_back(self) -> None:
        self._filter.remove_class("shown")
        self._filter.value = ""
        self.set_focus(self._table)

    def _chosen(self) -> DestinationState | None:
        key = self._table.chosen
        return None if key is None else self._states.get(key)


def _cell(index: int, text: str) -> Text:
    return Text(text, justify="left" if COLUMNS[index][0] in TEXTS else "right")


def _key(state: DestinationState) -> str:
    return f"{state.topic} {'' if state.subscription is None else state.subscription.name}"


def _destination(broker: WatchedBroker, state: DestinationState) -> Queue | Topic:
    is_queue = state.subscription is not None and state.subscription.name == broker.config.queue_subscription_name
    return Queue(state.name) if is_queue else Topic(state.name)


def _browse(screen: _DetailScreen, broker: WatchedBroker, destination: Queue | Topic) -> None:
    if isinstance(destination, Queue):
        screen.app.push_screen(Messages(broker, destination))
    else:
        screen.notify("Only a queue can be browsed; a topic keeps messages for its subscriptions.", severity="warning")


class Detail(_Updated):
    """A queue, or all subscriptions of a topic, with consumers and reasons, as ``jmsaio stats`` shows them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,b", "browse", "Messages")]

    def __init__(self, broker: WatchedBroker, destination: Queue | Topic) -> None:
        self._page = _Page()
        super().__init__(broker, self._page)
        self._destination = destination

    async def read(self) -> Sequence[DestinationState]:
        return await read_states(self._broker.admin, self._broker.config, self._destination)

    def show(self, states: Sequence[DestinationState]) -> None:
        now = time.time() * 1000
        parts: list[RenderableType] = []
        for one in states:
            parts += [table_of([one], MESSAGES, self.app.size.width - _EDGES), *detail_of(one, now)]
        self._page.write(*parts)
        self.status(f"{self._destination.name}  {time.strftime('%H:%M:%S')}")

    def action_browse(self) -> None:
        _browse(self, self._broker, self._destination)


class Messages(_DetailScreen):
    """The first messages of a queue, which stay there."""

    def __init__(self, broker: WatchedBroker, queue: Queue) -> None:
        self._table = _Table()
        super().__init__(self._table)
        self._broker = broker
        self._queue = queue
        self._texts: list[Text] = []

    def on_mount(self) -> None:
        self._table.add_columns("time", "JMSMessageID", "body")
        self._table.focus()
        self.work(self._read())

    async def _read(self) -> None:
        name = self._queue.name
        self.status(f"{name}: reading")
        try:
            await browse_each(self._broker.source, name, None, _MESSAGES, self._add)
        except JMSError as error:
            self.status(f"{name}: {error}", failed=True)
        else:
            more = f"; 'jmsaio browse {name}' shows all" if len(self._texts) == _MESSAGES else ""
            self.status(f"{name}: the first {len(self._texts)} messages, all still there{more}")

    def _add(self, message: Message) -> None:
        text = to_text(message, headers=True)
        if len(text) > _CHARACTERS:
            text = text[:_CHARACTERS].append(f" ... {len(text) - _CHARACTERS} more characters")
        self._table.add_row(*map(Text, to_row(message)), key=str(len(self._texts)))
        self._texts.append(text)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self.app.push_screen(Whole(self._texts[event.cursor_row]))


class Whole(_DetailScreen):
    """One message: properties, headers, body."""

    def __init__(self, text: Text) -> None:
        self._page = _Page()
        super().__init__(self._page)
        self._text = text

    def on_mount(self) -> None:
        self._page.write(self._text)
        self._page.focus()
        self.status("one message; it is still in the queue")
