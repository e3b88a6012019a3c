import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from keeper_yard import Yard
from without_rights import nobody  # noqa: F401


@pytest.fixture
def yard(tmp_path):
    made = Yard(tmp_path)
    yield made
    made.close()
