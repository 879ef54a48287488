"""`python -m penstock.cli` for where the command is not on the path."""

import sys

from penstock.cli import main

sys.exit(main())
