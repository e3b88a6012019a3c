"""Addresses: what they mean, what they are called, what of them may be seen."""

import pytest

from runyard.prefetch import addresses
from runyard.prefetch.failures import Failure

HUB, WEB = addresses.HubAddress, addresses.WebAddress
OBJECT, FILE = addresses.ObjectAddress, addresses.FileAddress


@pytest.mark.parametrize(
    ("uri", "address", "name"),
    [
        ("hf://org/model", HUB("models", "org/model", "main", ""), "org--model"),
        ("hf://models/org/m.x-1@v2", HUB("models", "org/m.x-1", "v2", ""), "org--m.x-1"),
        ("hf://gpt2@main", HUB("models", "gpt2", "main", ""), "gpt2"),
        ("hf://datasets/org/d", HUB("datasets", "org/d", "main", ""), "org--d"),
        ("hf://org/m/a/b.bin", HUB("models", "org/m", "main", "a/b.bin"), "b.bin"),
        ("hf://org/m@v1/a/b.bin", HUB("models", "org/m", "v1", "a/b.bin"), "b.bin"),
        ("hf://org/m@refs/pr/7/a", HUB("models", "org/m", "refs/pr/7", "a"), "a"),
        ("hf://org/m@refs%2Fpr%2F7", HUB("models", "org/m", "refs/pr/7", ""), "org--m"),
        ("hf://org/m#teacher", HUB("models", "org/m", "main", ""), "teacher"),
        ("https://h/a/b%20c.bin", WEB("https://h/a/b%20c.bin", None, None), "b c.bin"),
        ("https://h:8443/a?x=1&y=2", WEB("https://h:8443/a?x=1&y=2", None, None), "a"),
        ("http://u:p%40@h/a", WEB("http://h/a", "u", "p@"), "a"),
        ("https://h/ü.bin", WEB("https://h/%C3%BC.bin", None, None), "ü.bin"),
        ("https://[::1]:80/a", WEB("https://[::1]:80/a", None, None), "a"),
        ("https://h/#named", WEB("https://h/", None, None), "named"),
        ("s3://bucket/a/b", OBJECT("bucket", "a/b"), "b"),
        ("s3://bucket/a/b/", OBJECT("bucket", "a/b/"), "b"),
        ("s3://bucket/", OBJECT("bucket", ""), "bucket"),
        ("s3://bucket/a?b%20c", OBJECT("bucket", "a?b c"), "a?b c"),
        ("file:///data/set", FILE("/data/set"), "set"),
        ("file:///data/a%23b/", FILE("/data/a#b/"), "a#b"),
        ("file://localhost/data", FILE("/data"), "data"),
    ],
)
def test_what_is_meant(uri, address, name):
    assert addresses.parse(uri) == (address, name)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "model",
        "ftp://host/x",
        "hf://",
        "hf://org/",
        "hf://../model",
        "hf://org/..",
        "hf://org/mo..del",
        "hf://org/model@",
        "hf://org/model@../../x",
        "hf://org/model/../../x",
        "hf://org/model/a%2F..%2Fb",
        "hf://spaces/org/app",
        "hf://org/model?x=1",
        "https://",
        "https:///x",
        "https://host/",
        "https://host:port/x",
        "https://ho st/x",
        "https://host/x\n",
        "https://host/x#../y",
        "https://host/..",
        "https://host/%2e%2e",
        "https://[::1/x",
        "s3:///key",
        "s3://b/x",
        "s3://..bucket/x",
        "file://host/x",
        "file:x",
        "file:///",
        "file:///a%00b",
    ],
)
def test_what_is_refused(uri):
    with pytest.raises(Failure) as raised:
        addresses.parse(uri)
    assert raised.value.code == "bad_uri"


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://user:pass@h/x", "https://***@h/x"),
        ("https://user@h/x", "https://***@h/x"),
        ("https://a:b@c:d@h/x", "https://***@h/x"),
        ("https://h/x?token=secret", "https://h/x?***"),
        ("https://h/x?token=secret#name", "https://h/x?***"),
        ("https://h/x#secret", "https://h/x"),
        ("s3://bucket/x", "s3://bucket/x"),
        ("hf://org/model@v1", "hf://org/model@v1"),
        ("x\ny", "x?y"),
    ],
)
def test_what_people_may_see(uri, shown):
    assert addresses.masked(uri) == shown


@pytest.mark.parametrize("path", ["a", "a/b.c", "ä/ö", ".gitattributes", "a b", "..a", "a.."])
def test_paths_of_servers(path):
    assert addresses.safe_path(path) == path


@pytest.mark.parametrize(
    "path",
    ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a\\b", "a\x07", "\udc80"],
)
def test_paths_that_lead_elsewhere(path):
    with pytest.raises(Failure, match="bad_answer"):
        addresses.safe_path(path)


def test_the_port_is_part_of_who_is_asked():
    assert addresses.origin("https://h/x") == addresses.origin("https://h:443/y")
    assert addresses.origin("https://h/x") != addresses.origin("http://h/x")
    assert addresses.origin("https://h/x") != addresses.origin("https://h:8443/x")
    assert addresses.origin("https://H/x") == addresses.origin("https://h/x")
