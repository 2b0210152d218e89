"""`python -m rayflink` is the command line."""

from rayflink.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
