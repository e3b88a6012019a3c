"""Ports that somebody listens on, as the kernel of this machine tells them."""

import socket

import pytest

from runyard.probes.listening import listening_ports
from runyard.probes.machine import PsutilProbe
from yards import free_port

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"


def row(port, state, address="0100007F"):
    return f"   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 0\n"


@pytest.fixture
def make_table(tmp_path):
    def make(*rows):
        path = tmp_path / f"table{len(list(tmp_path.iterdir()))}"
        path.write_text(HEAD + "".join(rows))
        return path

    return make


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET, "127.0.0.77"),
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::"),
    ],
)
def test_a_listener_at_any_address_is_seen(family, address, tmp_path):
    """R55"""
    port = free_port()  # at every address: another one may have it at another address
    with socket.socket(family) as listener:
        try:
            listener.bind((address, port))
        except OSError:
            pytest.skip(f"{address} is not there")
        assert port not in listening_ports()  # bound is not listening
        listener.listen()
        assert port in listening_ports()
        assert port in PsutilProbe(tmp_path).listening_ports()
    assert port not in listening_ports()


def test_a_connection_is_no_listener():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as client:
            assert client.getsockname()[1] not in listening_ports()


def test_both_tables_are_read_up_to_the_first_connection(make_table):
    four = make_table(row(38000, "0A"), row(38001, "0A"), row(38002, "01"), row(38003, "0A"))
    six = make_table(row(38004, "0A", "0" * 32))
    assert listening_ports([four, six]) == {38000, 38001, 38004}


def test_what_the_kernel_does_not_tell_is_not_known(make_table, tmp_path):
    torn = tmp_path / "torn"
    torn.write_text(HEAD + row(38000, "0A") + "   1: 0100")
    assert listening_ports([tmp_path / "absent", make_table(), torn]) == {38000}
