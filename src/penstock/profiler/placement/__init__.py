"""Where a cache would pay (`Options.autocache`): measured in the first whole pass, decided, and put there."""
