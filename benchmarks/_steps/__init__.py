"""The steps that steps.py measures, each written once for penstock and tf.data."""
