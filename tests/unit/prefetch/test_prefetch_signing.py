"""Signatures against the examples that the makers of the scheme publish."""

from datetime import UTC, datetime

from runyard.prefetch import signing

KEYS = signing.Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
AT = datetime(2013, 5, 24, tzinfo=UTC)
HOST = "https://examplebucket.s3.amazonaws.com"


def signature(method, url, headers=()):
    signed = signing.sign(method, url, dict(headers), KEYS, "us-east-1", AT)
    return signed["Authorization"].rpartition("Signature=")[2]


def test_an_object_with_a_range():
    assert signature("GET", f"{HOST}/test.txt", {"Range": "bytes=0-9"}.items()) == (
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def test_a_listing():
    assert signature("GET", f"{HOST}/?max-keys=2&prefix=J") == (
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )


def test_a_query_without_a_value():
    assert signature("GET", f"{HOST}/?lifecycle") == (
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    )


def test_a_port_that_goes_without_saying_is_not_signed():
    assert signature("GET", f"{HOST}:443/x") == signature("GET", f"{HOST}/x")
    assert signature("GET", f"{HOST}:9000/x") != signature("GET", f"{HOST}/x")


def test_a_session_is_part_of_it():
    keys = signing.Credentials(KEYS.access_key, KEYS.secret_key, "session")
    signed = signing.sign("GET", f"{HOST}/x", {}, keys, "us-east-1", AT)
    assert signed["x-amz-security-token"] == "session"
    assert "x-amz-security-token" in signed["Authorization"]
    assert "host" not in signed
