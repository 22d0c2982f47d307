"""Proves inside an image build that the image holds what its plane imports, and no more.

Every module of the plane is imported, so a dependency missing from its requirements.txt fails the
build, not a pod. Run by the Dockerfiles: `check_plane.py PACKAGE --without MODULE…`.
"""

import argparse
import importlib
import importlib.util
import pkgutil
import sys


def imported_modules(package: str) -> list[str]:
    """Import every module of the package except the `__main__` ones, which would start it."""
    root = importlib.import_module(package)
    names = [module.name for module in pkgutil.walk_packages(root.__path__, f"{package}.")]
    importable = [name for name in names if not name.endswith(".__main__")]
    for name in importable:
        importlib.import_module(name)
    return importable


def main() -> None:
    """Exit non-zero when a module can't be imported or an unwanted one is there."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("package")
    arguments.add_argument("--without", nargs="*", default=[], metavar="MODULE")
    wanted = arguments.parse_args()
    unwanted = [module for module in wanted.without if importlib.util.find_spec(module)]
    if unwanted:
        sys.exit(f"{wanted.package} has no use for {', '.join(unwanted)}: take them out of its requirements.txt")
    sys.stdout.write(f"{wanted.package}: {len(imported_modules(wanted.package))} modules import\n")


if __name__ == "__main__":
    main()
