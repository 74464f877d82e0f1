"""The life of a received record over pulsar-client: who owns it until it is settled, counted, delayed, moved."""
