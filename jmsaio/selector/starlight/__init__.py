"""The selector language of the Java broker plugin, with the results of the plugin (ActiveMQ's engine)."""
