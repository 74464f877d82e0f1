"""The embedded broker's own side: topics, subscriptions, consumers, transactions, time. It knows no event loop."""
