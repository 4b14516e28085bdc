"""What this project's test runs and `understudy conform` do while pytest collects their cases."""

import contextlib
import gc


@contextlib.contextmanager
def cases_are_no_garbage():
    """Looking for garbage among tens of thousands of cases would take two thirds of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
