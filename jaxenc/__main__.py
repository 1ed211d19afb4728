"""`python -m jaxenc COMMAND` is `jaxenc COMMAND`."""

import sys

from jaxenc.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
