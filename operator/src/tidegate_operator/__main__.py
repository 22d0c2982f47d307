"""`python -m tidegate_operator`."""

import sys

from tidegate_operator.main import main

if __name__ == "__main__":
    sys.exit(main())
