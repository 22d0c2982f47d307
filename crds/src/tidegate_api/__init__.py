"""Models shared by every plane: custom resources, rendered documents, wire contract.

Nothing here does I/O, reads a clock or imports a plane, so that operator, sidecar, runtime and
command line can all depend on it without depending on each other.
"""
