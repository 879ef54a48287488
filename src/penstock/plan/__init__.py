"""What to compute: frozen nodes, checked when built, that run nowhere by themselves."""
