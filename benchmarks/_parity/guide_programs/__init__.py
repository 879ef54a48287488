"""Programs in the style of the public guides to tf.data. The global `tf` is TensorFlow or penstock's `compat.tf`."""
