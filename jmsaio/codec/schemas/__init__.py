"""Values with a schema of Pulsar's registry: read from payloads and written to them."""
