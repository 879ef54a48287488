"""The compiled parser of tf.train.Example: a Block of records into dense columns, in one call without the GIL."""
