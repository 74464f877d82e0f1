"""The embedded broker itself: topics, subscriptions, consumers, transactions, time. It uses no event loop."""
