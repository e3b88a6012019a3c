"""What tests of probes share."""

import pytest
from set_clock import SetClock


@pytest.fixture
def clock():
    return SetClock()
