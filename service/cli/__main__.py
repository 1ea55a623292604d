"""`python -m service.cli`: the command without an installed script."""

import sys

try:
    from service.cli import main

    code = main()
except KeyboardInterrupt:  # before `main` could look after it
    code = 130
sys.exit(code)
