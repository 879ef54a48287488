"""Live views of running iterations: over a socket, in a notebook, and for Prometheus and OpenTelemetry."""
