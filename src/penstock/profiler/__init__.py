"""What ran and what it cost, told to a person."""
