"""Plans: frozen nodes that describe a pipeline. Nodes are checked when they are created, and run nothing themselves."""
