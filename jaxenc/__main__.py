"""`python -m jaxenc COMMAND`, where the command `jaxenc` is not on the PATH: in notebooks, for one."""

import sys

from jaxenc.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
