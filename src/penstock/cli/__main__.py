"""`python -m penstock.cli` runs the command if it is not on the path."""

import sys

from penstock.cli import main

sys.exit(main())
