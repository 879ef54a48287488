"""Hot loops of the stages: the plain form defines the result, the native one is compiled."""
