"""Plans, creates, opens, replaces and deletes the subscriptions of consumers."""
