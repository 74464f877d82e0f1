"""Connections to brokers, who serves what, and what all parts of one client share."""
