"""Discovery of the data source ``jms``: Spark imports each top-level module whose name begins with ``pyspark_``.

It does so before the first Python data source of any kind is used, so an error here would also break the others. The
build puts this file at the top of the wheel. If jmsaio or pyarrow can't be imported, there is no ``DefaultSource``, and
Spark reports an unknown data source ``jms``; ``jmsaio.spark.register`` raises the reason.
"""

from importlib import import_module

try:
    import_module("pyarrow")  # the data source itself loads it when it reads or writes
    from jmsaio.spark.source import JmsSource as DefaultSource
except Exception:  # a broken installation can raise anything; it must not break other sources
    __all__: list[str] = []
else:
    __all__ = ["DefaultSource"]
