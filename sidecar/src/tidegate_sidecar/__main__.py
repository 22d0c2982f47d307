"""`python -m tidegate_sidecar`."""

import sys

from tidegate_sidecar.main import main

sys.exit(main())
