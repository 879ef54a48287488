"""How padded, ragged and sparse batches, rebatch run."""
