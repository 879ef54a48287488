"""Cache entries: folders that several processes fill, one after the other, while other processes read them."""
