"""The command: `python -m foreshard_analysis --help`."""

import sys

PACKAGES = "python3-h5py python3-pandas python3-matplotlib python3-jinja2"


def main() -> int:
    try:
        from foreshard_analysis.command import run
    except ModuleNotFoundError as error:
        print(
            f"foreshard-analysis: error: Python has no module `{error.name}`\n"
            f"  where:  {sys.executable}, exit code 1\n"
            f"  remedy: apt-get install {PACKAGES}, or pip install ./analysis",
            file=sys.stderr,
        )
        return 1
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
