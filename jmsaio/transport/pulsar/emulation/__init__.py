"""JMS features that pulsar-client lacks: counted redelivery, delays, dead letters, replaced subscriptions."""
