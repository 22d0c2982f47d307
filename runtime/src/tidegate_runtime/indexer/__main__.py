"""`python -m tidegate_runtime.indexer`."""

import sys

from tidegate_runtime.indexer.main import main

sys.exit(main())
