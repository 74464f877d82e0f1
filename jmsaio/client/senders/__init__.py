"""From producers to the transport's senders: the pool of senders, pending sends, receipts."""
