"""`python -m service.cli`: the command without an installed script."""

import sys

from service.cli import main

sys.exit(main())
