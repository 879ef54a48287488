"""Making parts of plans elsewhere: workers, and how what they make comes to the consumer. See the README."""
