"""What JMS needs and Pulsar's client lacks: counted redelivery, unacknowledged records, dead letters."""
