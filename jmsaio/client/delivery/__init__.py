"""From a transport's receiver to the application: inboxes, filters, dispatch, acknowledgement, redelivery."""
