"""Plans, creates, opens, replaces and deletes the subscriptions behind consumers."""
