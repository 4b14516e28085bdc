"""TOML: Python's own reader, or before 3.11 the package that it was made from."""

try:
    from tomllib import TOMLDecodeError, loads
except ModuleNotFoundError:
    from tomli import TOMLDecodeError, loads

__all__ = ["TOMLDecodeError", "loads"]
