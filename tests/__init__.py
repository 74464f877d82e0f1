"""Every test of jmsaio; helpers are imported as ``tests.x``."""
