"""How sequences packed into rows, batches by tokens run."""
