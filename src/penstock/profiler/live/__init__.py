"""What runs now: told over a socket, in a notebook, and to Prometheus and OpenTelemetry."""
