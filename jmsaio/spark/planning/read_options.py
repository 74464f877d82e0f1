"""How a range is read: what an option of the data source means for one task."""

from __future__ import annotations

from typing import Self

import attrs

from jmsaio.config import Configuration, ConsumerConfig
from jmsaio.selector import Selector
from jmsaio.spark.options.parse import OnDecodeError, SourceOptions


@attrs.frozen(kw_only=True)
class ReadOptions:
    """How a range is read.

    Attributes:
        selector: messages that it does not select are left out; None: all are read.
        namespace: ``tenant/namespace`` left out of the names of reply destinations.
        since: publish time in ms since the epoch of the first messages wanted, or None.
        before: publish time of the first messages not wanted, or None.
        check_body: see ``to_row``.
        fail_on_decode_error: a message that can't be read in whole is an error, else a row that says so.
        fail_on_data_loss: messages that are stored no more are an error, else a warning.
        data_loss_folder: where a loss becomes a file, too, if it is no error; or None.
        read_timeout: seconds without a message that was to come, before reading fails.
        outage_timeout: seconds that an unreachable broker is waited for.
        batch_rows: rows at a time, at most.
        batch_bytes: bytes of messages at which these rows end, and about as many are prefetched at most.
        config: for the reader; ``receiver_queue_size`` is the most that is prefetched.
        close_timeout: seconds for closing a reader.
    """

    selector: Selector | None = None
    namespace: str = "public/default"
    since: int | None = None
    before: int | None = None
    check_body: bool = True
    fail_on_decode_error: bool = False
    fail_on_data_loss: bool = True
    data_loss_folder: str | None = None
    read_timeout: float = 60.0
    outage_timeout: float = 300.0
    batch_rows: int = 4096
    batch_bytes: int = 16 * 1024 * 1024
    config: ConsumerConfig = attrs.field(factory=ConsumerConfig)
    close_timeout: float = 10.0

    @classmethod
    def by(cls, options: SourceOptions, configuration: Configuration) -> Self:
        """How the options of a reader want ranges to be read, on a connection with this configuration."""
        fails = options.on_decode_error is OnDecodeError.FAIL
        return cls(
            selector=None if options.selector is None else Selector(options.selector),
            namespace=configuration.system_namespace,
            since=options.starting_time,
            before=options.ending_time,
            check_body=fails or any(column.name == "decode_error" for column in options.columns),
            fail_on_decode_error=fails,
            fail_on_data_loss=options.fail_on_data_loss,
            data_loss_folder=options.data_loss_folder,
            read_timeout=options.read_timeout,
            outage_timeout=options.outage_timeout,
            batch_rows=options.batch_rows,
            batch_bytes=options.batch_bytes,
            config=attrs.evolve(configuration.consumer, receiver_queue_size=options.receiver_queue),
            close_timeout=configuration.close_timeout,
        )
