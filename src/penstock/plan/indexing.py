"""Steps: random access, global shuffles, provenance."""
