"""The rows of Spark: reads, micro-batches and writes beside loops over pulsar-client.

They need ``pip install 'jmsaio[spark]'`` and Java. ``python -m benchmarks --spark`` measures them.
"""
