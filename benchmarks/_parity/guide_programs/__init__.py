"""Programs in the manner of the public guides to tf.data. The global `tf` is TensorFlow or penstock's `compat.tf`."""
