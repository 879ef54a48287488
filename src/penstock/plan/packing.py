"""Steps: sequences packed into rows, batches by tokens."""
