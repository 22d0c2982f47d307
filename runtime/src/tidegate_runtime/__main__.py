"""`python -m tidegate_runtime`."""

import sys

from tidegate_runtime.main import main

sys.exit(main())
