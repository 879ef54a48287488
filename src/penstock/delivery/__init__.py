"""Workers that compute parts of plans, and the transport of results to the consumer. See the README."""
