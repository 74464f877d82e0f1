"""What both clients of Pulsar share for records."""
