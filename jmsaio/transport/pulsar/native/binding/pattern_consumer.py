"""``PatternConsumer``: the native consumer of a topics pattern, used so that it can't crash the process.

pulsar-client's consumer over several topics has two faults (version 3.13):

* ``unsubscribe_async`` sends a request for each topic, and frees its list of topics with the last answer: also inside
  the call, while it iterates over that list, if all answers arrive before the last callback is registered. Copying a
  Python callback waits for the GIL, so that another Python thread is enough. Therefore it is called on pulsar-client's
  network thread: the same thread processes the answers, after the call.
* It regularly looks for new topics. The callbacks of these requests refer to the consumer without keeping it alive.
  Therefore a closed consumer is kept until the last request must have ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import _pulsar
import attrs

from jmsaio.errors import TransportError
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, holds_native
from jmsaio.transport.pulsar.native.binding.handles import ConsumerHandle, OnResult, Result
from jmsaio.transport.pulsar.native.binding.results import NO_ANSWER

#: Consecutive requests of one search for new topics: names, partitions, consumers.
_REQUESTS = 3


@attrs.define(eq=False, repr=False)
class PatternConsumer:
    """A ``ConsumerHandle`` of a topics pattern; all other methods are the native consumer's own.

    Args:
        ask_broker: starts a request that is answered on the network thread, with the native callback; None if
            pulsar-client has several network threads.
        timeout: maximum seconds of a request of pulsar-client.
    """

    _bridge: Bridge
    _native: ConsumerHandle
    _ask_broker: Callable[[Callable[..., None]], object] | None
    _timeout: float
    _unsubscribing: bool = attrs.field(default=False, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        holds_native(self)

    def unsubscribe_async(self, callback: OnResult, /) -> None:
        """Delete the subscription, on the network thread. Raises TransportError if there are several of these."""
        if self._ask_broker is None:
            raise TransportError(
                "pulsar-client can crash when it deletes a subscription to a pattern with several network threads; "
                "set numIoThreads to 1, or delete the subscription with an administration tool"
            )
        self._unsubscribing = True  # is_connected waits, with the GIL, for a lock held while a callback is copied
        self._ask_broker(partial(self._answered, callback))

    def _answered(self, callback: OnResult, result: Result, *answer: object) -> None:
        """Unsubscribe on the network thread. A native callback: never raises."""
        if self._closed or int(result) in NO_ANSWER:
            self._ended(callback, _pulsar.Result.AlreadyClosed if self._closed else result)
        elif threading.get_ident() == self._bridge.thread:  # the answer was there before its callback
            self._bridge.post(self.unsubscribe_async, callback)
        else:
            self._native.unsubscribe_async(partial(self._ended, callback))

    def _ended(self, callback: OnResult, result: Result) -> None:
        self._unsubscribing = False
        callback(result)

    def close_async(self, callback: OnResult, /) -> None:
        """Close it, and keep it until pulsar-client's requests for it have ended."""
        if not self._closed:
            self._closed = True
            self._bridge.retain(self, _REQUESTS * self._timeout)
        self._native.close_async(callback)

    def is_connected(self) -> bool:
        """Return whether it is connected to all topics; True while it unsubscribes."""
        return self._unsubscribing or self._native.is_connected()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)
