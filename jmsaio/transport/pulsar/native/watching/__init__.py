"""Watching a transport: lost connections, and subscriptions that receive nothing although the broker answers."""
