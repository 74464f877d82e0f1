"""The benchmark of a checkout: jmsaio side by side with raw pulsar-client, pulsar.asyncio and the Java peer.

``python -m benchmarks --help`` says how. Only this package and ``jmsaio.transport.pulsar`` import ``pulsar``.
"""
