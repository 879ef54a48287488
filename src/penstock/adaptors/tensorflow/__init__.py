"""To tf.data and back."""
