"""Steps: padded, ragged and sparse batches, rebatch."""
