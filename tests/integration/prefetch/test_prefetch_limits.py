"""What the program refuses or gives up: quota, full disks, untrusted servers, leaked secrets."""

import os
import ssl
import subprocess
import tempfile
from pathlib import Path

import pytest

from download_server import DownloadServer, content
from runyard.prefetch import plan as plans
from small_disk import small_disk


def blobs(tmp_path):
    return sorted((tmp_path / "cache/blobs").glob("*/*"))


def remove_links(program):
    for path in program.links.iterdir():
        path.unlink()
    program.links.rmdir()


def test_least_recently_used_goes_first(server, make_program, tmp_path):
    urls = [server.put(f"/file{n}.bin", content(40_000, n)) for n in range(4)]
    for url in urls[:3]:
        program = make_program(url, quota_bytes=130_000).run()
        assert program.status == 0
        remove_links(program)
    used_again = make_program(urls[0], quota_bytes=130_000).run()
    remove_links(used_again)
    program = make_program(urls[3], quota_bytes=130_000).run()
    assert program.status == 0
    assert sum(path.stat().st_size for path in blobs(tmp_path)) == 120_000
    asked = {url: len(server.asked(url.removeprefix(server.url))) for url in urls}
    make_program(urls[0], quota_bytes=130_000).run()
    make_program(urls[2], quota_bytes=130_000).run()
    assert [one.status for one in server.asked("/file0.bin")] == [200, 304, 304]
    assert [one.status for one in server.asked("/file2.bin")] == [200, 304]
    assert len(server.asked("/file1.bin")) == asked[urls[1]]
    gone = make_program(urls[1]).run()
    assert gone.items["file1.bin"]["fetched_files"] == 1


def test_what_a_job_uses_is_never_removed(server, make_program, tmp_path):
    used = make_program(server.put("/used.bin", content(80_000, 1)), quota_bytes=100_000).run()
    program = make_program(server.put("/new.bin", content(50_000, 2)), quota_bytes=100_000).run()
    assert (program.status, program.outcome["code"]) == (16, "quota")
    assert program.outcome["params"] == {"needed_bytes": 50_000, "quota_bytes": 100_000}
    assert (used.links / "used.bin").stat().st_nlink == 2
    remove_links(used)
    again = make_program(server.url + "/new.bin", quota_bytes=100_000).run()
    assert again.status == 0
    assert len(blobs(tmp_path)) == 1


def test_links_from_another_file_system_count_as_use(server, make_program, tmp_path):
    """Without hard links the use is written down, and holds while the link directory is there."""
    elsewhere = "/dev/shm"
    if os.stat(elsewhere).st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("no second file system here")
    with tempfile.TemporaryDirectory(dir=elsewhere, prefix="runyard-test-") as folder:
        links = Path(folder) / "links"
        url = server.put("/used.bin", content(80_000, 1))
        used = make_program(url, links=links, quota_bytes=100_000).run()
        assert used.status == 0
        assert (links / "used.bin").is_symlink()
        assert (links / "used.bin").read_bytes() == content(80_000, 1)
        new = server.put("/new.bin", content(50_000, 2))
        assert make_program(new, quota_bytes=100_000).run().status == 16
        remove_links(used)
        assert make_program(new, quota_bytes=100_000).run().status == 0


def test_partials_of_nobody_make_room(server, make_program, tmp_path):
    url = server.put("/half.bin", content(90_000, 1))
    server.files["/half.bin"].steps = [{"cut_after": 60_000}]
    assert make_program(url, tries=1, quota_bytes=100_000).run().status == 12
    assert len(list((tmp_path / "cache/partials").glob("*.partial"))) == 1
    new = make_program(server.put("/new.bin", content(50_000, 2)), quota_bytes=100_000).run()
    assert new.status == 0
    assert not list((tmp_path / "cache/partials").iterdir())


def test_an_answer_without_an_end_meets_the_quota(server, make_program, tmp_path):
    url = server.put("/endless.bin", content(12 << 20), length=False)
    program = make_program(url, quota_bytes=5 << 20).run()
    assert program.status == 16
    kept = sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*.partial"))
    assert kept < 12 << 20


def test_more_than_the_quota_is_refused_before_it_is_fetched(server, make_program):
    url = server.put("/big.bin", content(200_000))
    program = make_program(url, quota_bytes=100_000).run()
    assert program.status == 16
    assert server.asked("/big.bin")[0].status == 200


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", 4) as point:
        yield point


@pytest.mark.root
@pytest.mark.parametrize("length", [True, False], ids=["known", "unknown"])
def test_a_full_disk_is_said_and_repaired_by_room(server, make_program, disk, length):
    """Known beforehand nothing is written; found on the way, the partial stays good."""
    data = content(3 << 20)
    url = server.put("/file.bin", data, length=length)
    fill = disk / "fill"
    fill.write_bytes(b"x" * (2 << 20))
    program = make_program(url, cache=disk / "cache").run()
    assert (program.status, program.outcome["code"]) == (14, "disk_full")
    assert program.progress()["outcome"]["code"] == "disk_full"
    fill.unlink()
    again = make_program(url, cache=disk / "cache").run()
    assert again.status == 0
    assert (again.links / "file.bin").read_bytes() == data
    if not length:
        assert server.asked("/file.bin")[-1].status == 206


@pytest.mark.root
def test_unused_content_makes_room_on_a_full_disk(server, make_program, disk, tmp_path):
    old = make_program(server.put("/old.bin", content(2 << 20, 1)), cache=disk / "cache")
    assert old.run().status == 0
    new = make_program(server.put("/new.bin", content(3 << 20, 2)), cache=disk / "cache")
    # Linked by symbolic links from another file system, so only the written use holds it.
    assert new.run().status == 14
    remove_links(old)
    assert make_program(server.url + "/new.bin", cache=disk / "cache").run().status == 0
    assert tmp_path.exists()


def test_a_cache_that_cannot_be_written(server, make_program, tmp_path):
    (tmp_path / "file").write_text("")
    program = make_program(server.put("/x.bin", b"x"), cache=tmp_path / "file" / "cache").run()
    assert (program.status, program.outcome["code"]) == (18, "storage")


def test_passwords_are_used_and_never_shown(server, make_program, tmp_path):
    header = "Basic YWxpY2U6c2VzYW1l"  # alice:sesame
    server.put("/secret.bin", b"x" * 1000, needs=("authorization", header))
    server.files["/secret.bin"].steps = [{"status": 503}]
    host = server.url.removeprefix("http://")
    uri = f"http://alice:sesame@{host}/secret.bin?token=alsosecret"
    program = make_program(uri).run()
    assert program.status == 0
    wrong = make_program(uri.replace("sesame", "guessed")).run()
    assert (wrong.status, wrong.outcome["code"]) == (11, "auth")
    assert wrong.outcome["uri"] == f"http://***@{host}/secret.bin?***"
    for secret in ("sesame", "guessed", "alsosecret", "YWxpY2U6"):
        assert secret not in program.text() + wrong.text()
        names = subprocess.run(
            ["grep", "-r", "-l", secret, tmp_path / "cache"], capture_output=True, check=False
        )
        assert names.stdout == b""


@pytest.fixture
def other_server():
    server = DownloadServer()
    yield server
    server.close()


def redirect(server, path, target, status=302):
    server.put(path, b"")
    step = {"status": status, "headers": {"Location": target}}
    server.files[path].steps = [step for _ in range(20)]
    return path


def test_a_redirect_elsewhere_drops_the_password(server, other_server, make_program):
    there = other_server.put("/there.bin", b"there")
    redirect(server, "/here.bin", there)
    host = server.url.removeprefix("http://")
    program = make_program(f"http://alice:sesame@{host}/here.bin").run()
    assert program.status == 0
    assert (program.links / "here.bin").read_bytes() == b"there"
    assert "authorization" in server.seen[0].headers
    assert "authorization" not in other_server.seen[0].headers


def test_a_redirect_at_home_keeps_it(server, make_program):
    server.put("/b.bin", b"b", needs=("authorization", "Basic YWxpY2U6c2VzYW1l"))
    redirect(server, "/a.bin", "/b.bin", status=307)
    host = server.url.removeprefix("http://")
    assert make_program(f"http://alice:sesame@{host}/a.bin").run().status == 0


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("file:///etc/passwd", "redirect_scheme"),
        ("ftp://host/x", "redirect_scheme"),
        ("/loop.bin", "too_many_redirects"),
    ],
)
def test_redirects_that_are_refused(server, make_program, target, reason):
    redirect(server, "/loop.bin", target)
    program = make_program(f"{server.url}/loop.bin").run()
    assert (program.status, program.outcome["params"]["reason"]) == (17, reason)


@pytest.fixture
def certificate(tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", key, "-out", cert),
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("openssl cannot make a certificate here")
    return key, cert


@pytest.fixture
def tls_server(certificate):
    key, cert = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = DownloadServer(tls=context)
    yield server
    server.close()


def test_tls_is_verified(tls_server, server, make_program, certificate):
    url = tls_server.put("/file.bin", b"safe")
    stranger = make_program(url).run()
    assert (stranger.status, stranger.outcome["params"]["reason"]) == (12, "tls")
    assert not tls_server.seen
    env = {"SSL_CERT_FILE": str(certificate[1])}
    trusted = make_program(url, env=env).run()
    assert trusted.status == 0
    assert (trusted.links / "file.bin").read_bytes() == b"safe"
    redirect(tls_server, "/down.bin", server.put("/plain.bin", b"plain"))
    down = make_program(f"{tls_server.url}/down.bin", env=env).run()
    assert (down.status, down.outcome["params"]["reason"]) == (17, "redirect_insecure")


def test_a_proxy_is_used_only_where_the_environment_names_one(server, other_server, make_program):
    """The other server stands for the proxy: it sees the whole address."""
    url = server.put("/file.bin", b"direct")
    other_server.put("/file.bin", b"by proxy")
    proxied = {"http_proxy": other_server.url.replace("//", "//me:pw@")}
    program = make_program(url, env=proxied).run()
    assert (program.links / "file.bin").read_bytes() == b"by proxy"
    assert other_server.seen[0].headers["proxy-authorization"] == "Basic bWU6cHc="
    assert not server.seen
    direct = make_program(f"{url}#direct", env={**proxied, "no_proxy": "127.0.0.1"}).run()
    assert (direct.links / "direct").read_bytes() == b"direct"


def test_a_missing_and_a_forbidden_file(server, make_program):
    missing = make_program(f"{server.url}/none.bin").run()
    assert (missing.status, missing.outcome["code"]) == (10, "not_found")
    assert missing.outcome["params"] == {"http_status": 404}
    server.put("/private.bin", b"x", needs=("authorization", "no"))
    forbidden = make_program(f"{server.url}/private.bin").run()
    assert (forbidden.status, forbidden.outcome["code"]) == (11, "auth")


def test_one_failure_ends_the_others_at_once(server, make_program):
    slow = server.put("/slow.bin", content(500_000), rate=1_000)
    program = make_program(slow, f"{server.url}/none.bin").run()
    assert program.status == 10
    assert program.outcome["uri"] == f"{server.url}/none.bin"


@pytest.mark.parametrize("name", ["..", "a/b", ".hidden", "a\nb", ""])
def test_names_that_lead_elsewhere_are_refused(server, make_program, name):
    url = server.put("/file.bin", b"x")
    program = make_program(plans.Item(url, name or "/")).run()
    assert (program.status, program.outcome["params"]["reason"]) == (15, "name")


def test_nothing_of_the_working_directory_is_imported(server, make_program, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "runyard").mkdir()
    (tmp_path / "runyard" / "__init__.py").write_text("raise SystemExit('taken over')")
    monkeypatch.chdir(tmp_path)
    program = make_program(server.put("/file.bin", b"x"), env={"PYTHONPATH": str(tmp_path)}).run()
    assert program.status == 0
