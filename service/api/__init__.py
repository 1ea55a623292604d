"""The HTTP API: routes that speak HTTP and nothing else; what is decided, is decided in the use cases of `service`."""
