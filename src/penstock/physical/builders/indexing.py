"""How random access, global shuffles, provenance run."""
