def in_step(*series):
    """zip for series that have the same length: zip(strict=True), which Python 3.9 does not have."""
    lists = [list(one) for one in series]
    assert len({len(one) for one in lists}) == 1
    return zip(*lists)
