"""How Spark finds the data source ``jms``: it imports each top-level module whose name begins with ``pyspark_``.

It does so before the first Python data source of any kind is used, so an error here would break the others, too. The
build puts this file at the top of the wheel. Where jmsaio or pyarrow can't be imported there is no ``DefaultSource``,
and Spark says that it knows no data source ``jms``; ``jmsaio.spark.register`` says why.
"""

from importlib import import_module

try:
    import_module("pyarrow")  # the data source itself loads it when it reads or writes
    from jmsaio.spark.source import JmsSource as DefaultSource
except Exception:  # an ImportError, or whatever a broken installation raises: never Spark's other sources' concern
    __all__: list[str] = []
else:
    __all__ = ["DefaultSource"]
