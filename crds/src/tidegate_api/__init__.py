"""What every plane shares: custom resources, rendered documents, wire contract, notations of flags, the shape of logs.

Nothing here does I/O (but for the one function that sends log lines to standard error), reads a clock or
imports a plane, so that operator, sidecar, runtime and command line can all depend on it without
depending on each other.
"""
