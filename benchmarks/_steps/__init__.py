"""What steps.py measures: each step, written once for penstock and for tf.data."""
