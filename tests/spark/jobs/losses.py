"""A loss that an archive accepts, found by the first of its runs, which fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
from pyspark.sql import SparkSession

from jmsaio.errors import TransportError
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.ranges import Loss


def check_told_by_the_first_that_does_not_fail(
    run: Callable[[SparkSession, ArchiveOrder], dict[str, Any]], module: ModuleType, spark: SparkSession, folder: Path
) -> None:
    """Have ``run``, of ``module``, archive three times: it fails, tells the loss, and tells it no more."""
    order = ArchiveOrder(
        connection={"url": "pulsar://127.0.0.1:1?connect_timeout=0.2"}, destination="queue://q", folder=folder,
        fail_on_data_loss=False,
    )  # fmt: skip
    loss = Loss("t", Place(1, 0), Place(2, 0), "deleted")
    plans = [ArchivePlan("queue://q", losses=(loss,)), ArchivePlan("queue://q"), ArchivePlan("queue://q")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "plan_archive", lambda *_: plans.pop(0))
        with pytest.raises(TransportError):
            run(spark, attrs.evolve(order, consume="s"))
        assert run(spark, order)["lost"] == [str(loss)]
        assert run(spark, order)["lost"] == []
