"""What every client of Pulsar needs for subscriptions: temporary ones end, changed durable ones are replaced."""
