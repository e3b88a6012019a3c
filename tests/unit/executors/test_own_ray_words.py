"""Why a Ray of the server's own does not start, as a waiting job is told."""

from runyard.executors import ray_spec


def test_a_python_without_ray_is_named():
    said = "the own Ray does not start: /opt/python: No module named 'ray'"
    assert ray_spec.why_own(said, "/opt/python") == "ray_not_installed: /opt/python"


def test_anything_else_is_told_by_its_last_line():
    assert ray_spec.why_own("it does not start: a\nno port is free\n", "") == (
        "ray_failed: no port is free"
    )
