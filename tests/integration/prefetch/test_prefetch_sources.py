"""Where things come from: hubs, object stores, local files; and who is told which credential."""

import contextlib
import hashlib
import json
import signal

import pytest

from download_server import DownloadServer, Hub, ObjectStore, content
from runyard.prefetch import plan as plans
from runyard.prefetch import signing
from yards import until

KEYS = signing.Credentials("AKIDTEST", "very/secret+key", "a-session-token")
AWS = {
    "AWS_ACCESS_KEY_ID": KEYS.access_key,
    "AWS_SECRET_ACCESS_KEY": KEYS.secret_key,
    "AWS_SESSION_TOKEN": KEYS.session_token,
    "AWS_REGION": "eu-test-1",
}


@pytest.fixture
def other_server():
    server = DownloadServer()
    yield server
    server.close()


@pytest.fixture
def hub(server):
    return Hub(server)


@pytest.fixture
def hub_env(server):
    return {"HF_ENDPOINT": server.url}


@pytest.fixture
def objects(server):
    return ObjectStore(server, KEYS)


@pytest.fixture
def object_env(server):
    return {**AWS, "AWS_ENDPOINT_URL": server.url}


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sizes_of_partials(tmp_path):
    found = []
    for path in (tmp_path / "cache/partials").glob("*.partial"):
        with contextlib.suppress(FileNotFoundError):
            found.append(path.stat().st_size)
    return found


def test_a_model_of_a_hub(hub, hub_env, server, make_program):
    weights = content(200_000)
    hub.add("org/model", "config.json", b"{}")
    hub.add("org/model", "sub folder/ünï.txt", b"words")
    hub.add("org/model", "weights.safetensors", weights, large=True)
    program = make_program("hf://org/model@v1", env=hub_env).run()
    assert program.status == 0, program.lines
    assert tree(program.links / "org--model") == {
        "config.json": b"{}",
        "sub folder/ünï.txt": b"words",
        "weights.safetensors": weights,
    }
    item = program.items["org--model"]
    assert (item["files"], item["fetched_files"], item["revision"]) == (3, 3, hub.commit)
    assert not (program.links / "org--model" / "config.json").is_symlink()

    asked = len(server.seen)
    again = make_program("hf://org/model@v1", env=hub_env).run()
    assert again.items["org--model"]["fetched_files"] == 0
    # The name of a revision may have moved, so the hub is asked where it is; for no file.
    assert [one.path for one in server.seen[asked:]] == [
        "/api/models/org/model/revision/v1",
        f"/api/models/org/model/tree/{hub.commit}",
    ]


def test_a_folder_takes_the_place_of_the_one_before(hub, hub_env, server, make_program):
    hub.add("org/model", "old.txt", b"old")
    first = make_program("hf://org/model", env=hub_env).run()
    hub.trees["org/model"].pop()
    hub.add("org/model", "new.txt", b"new")
    second = make_program("hf://org/model", env=hub_env, links=first.links).run()
    assert second.status == 0
    assert tree(first.links) == {"org--model/new.txt": b"new"}
    local = server.put("/file.bin", b"now a file")
    third = make_program(plans.Item(local, "org--model"), links=first.links).run()
    assert third.status == 0
    assert tree(first.links) == {"org--model": b"now a file"}


def test_a_commit_needs_no_asking(hub, hub_env, server, make_program):
    """A commit never changes, so what was fetched once needs no network at all."""
    hub.add("org/model", "config.json", b"{}")
    uri = f"hf://org/model@{hub.commit}"
    assert make_program(uri, env=hub_env).run().status == 0
    server.close()
    program = make_program(uri, env=hub_env).run()
    assert program.status == 0
    assert (program.links / "org--model" / "config.json").read_bytes() == b"{}"
    stranger = make_program(uri, env={**hub_env, "HF_TOKEN": "other"}, tries=1).run()
    assert stranger.status == 12


def test_a_hub_out_of_reach_is_replaced_by_what_it_said_last(hub, hub_env, make_program):
    hub.add("org/model", "config.json", b"{}")
    assert make_program("hf://org/model", env=hub_env).run().status == 0
    hub.down = True
    program = make_program("hf://org/model", env=hub_env, tries=2).run()
    assert program.status == 0
    assert program.items["org--model"]["confirmed"] is False
    offline = make_program("hf://org/model", env={**hub_env, "HF_HUB_OFFLINE": "1"}).run()
    assert offline.status == 0
    unknown = make_program("hf://org/other", env={**hub_env, "HF_HUB_OFFLINE": "1"}).run()
    assert (unknown.status, unknown.outcome["params"]["reason"]) == (12, "offline")


def test_a_dataset_and_a_part_of_it(server, hub_env, make_program):
    hub = Hub(server, kind="datasets")
    hub.add("org/data", "train/a.parquet", b"aaa", large=True)
    hub.add("org/data", "train/deep/b.parquet", b"bbb")
    hub.add("org/data", "test/c.parquet", b"ccc")
    program = make_program(
        "hf://datasets/org/data@main/train",
        "hf://datasets/org/data/test/c.parquet",
        env=hub_env,
    ).run()
    assert program.status == 0, program.lines
    assert tree(program.links / "train") == {"a.parquet": b"aaa", "deep/b.parquet": b"bbb"}
    assert (program.links / "c.parquet").read_bytes() == b"ccc"


def test_listings_have_pages_and_mirrors_may_have_no_tree(hub, hub_env, make_program, tmp_path):
    for number in range(25):
        hub.add("org/many", f"file{number:02}.txt", b"%d" % number)
    hub.page = 7
    program = make_program("hf://org/many", env=hub_env).run()
    assert len(tree(program.links / "org--many")) == 25
    hub.has_tree = False
    plain = make_program("hf://org/many", env=hub_env, cache=tmp_path / "other").run()
    assert plain.status == 0
    assert tree(plain.links / "org--many") == tree(program.links / "org--many")


def test_a_model_is_resumed_shard_by_shard(hub, hub_env, server, make_program, tmp_path):
    """R4: of a model too, only what is missing."""
    shards = [content(600_000, n) for n in range(3)]
    for number, shard in enumerate(shards):
        hub.add("org/model", f"shard{number}.bin", shard, large=True)
    paths = [hub.resolve("org/model", f"shard{number}.bin") for number in range(3)]
    for path in paths[1:]:
        server.files[path].rate = 20_000
    first = make_program("hf://org/model", env=hub_env).start()
    now = until(
        lambda: (now := first.progress()) and now["files_done"] == 1 and now,
        words=first.progress,
    )
    assert now["bytes_total"] == 1_800_000
    until(
        lambda: [size > 0 for size in sizes_of_partials(tmp_path)] == [True, True],
        words=lambda: sizes_of_partials(tmp_path),
    )
    first.send(signal.SIGTERM)
    first.wait()
    for path in paths:
        server.files[path].rate = None
    second = make_program("hf://org/model", env=hub_env).run()
    assert second.status == 0
    assert [len(server.asked(path)) for path in paths] == [1, 2, 2]
    assert all(server.asked(path)[1].status == 206 for path in paths[1:])
    assert list(tree(second.links / "org--model").values()) == shards


def test_a_changed_large_file_is_caught_by_its_hash(hub, hub_env, server, make_program):
    hub.add("org/model", "weights.bin", content(1000), large=True)
    server.put(hub.resolve("org/model", "weights.bin"), content(1000, 2))
    hub.add("org/small", "config.json", b"{}")
    server.put(hub.resolve("org/small", "config.json"), b"[]")
    for uri in ("hf://org/model", "hf://org/small"):
        program = make_program(uri, env=hub_env).run()
        assert program.status == 13
        assert not (program.links / "org--model").exists()


@pytest.mark.parametrize("where", ["environment", "file"])
def test_the_token_goes_to_the_hub_and_nowhere_else(
    server, other_server, hub_env, make_program, tmp_path, where
):
    """Large files are elsewhere; that server gets no token, and nothing shows it."""
    hub = Hub(server, token="hf_verysecret")
    hub.cdn = other_server
    hub.add("org/gated", "config.json", b"{}")
    hub.add("org/gated", "weights.bin", content(50_000), large=True)
    refused = make_program("hf://org/gated", env=hub_env).run()
    assert (refused.status, refused.outcome["code"]) == (11, "auth")
    assert refused.outcome["params"]["said"] == "GatedRepo"
    if where == "environment":
        env = {**hub_env, "HF_TOKEN": "hf_verysecret"}
    else:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "token").write_text("hf_verysecret\n")
        env = {**hub_env, "HF_HOME": str(tmp_path / "home")}
    program = make_program("hf://org/gated", env=env).run()
    assert program.status == 0
    assert len(other_server.seen) == 1
    assert "authorization" not in other_server.seen[0].headers
    assert "hf_verysecret" not in program.text()
    kept = list((tmp_path / "cache").rglob("*.json"))
    assert kept
    assert not any("verysecret" in path.read_text() + path.name for path in kept)


def test_what_a_hub_does_not_have(hub, hub_env, make_program):
    hub.add("org/model", "config.json", b"{}")
    for uri in ("hf://org/none", "hf://org/model@v9", "hf://org/model/none.bin"):
        program = make_program(uri, env=hub_env).run()
        assert (program.status, program.outcome["code"]) == (10, "not_found")
        assert program.outcome["uri"] == uri


@pytest.mark.parametrize(
    "path",
    ["../escape", "/etc/escape", "a/../../escape", "a//b", "./a", "a\\..\\b", "a\0b", "x" * 300],
)
@pytest.mark.parametrize("has_tree", [True, False])
def test_paths_that_lead_elsewhere_are_refused(
    hub, hub_env, make_program, tmp_path, path, has_tree
):
    hub.add("org/evil", "fine.txt", b"fine")
    hub.add("org/evil", path, b"evil")
    hub.has_tree = has_tree
    program = make_program("hf://org/evil", env=hub_env).run()
    assert (program.status, program.outcome["params"]["reason"]) == (17, "unsafe_path")
    assert not list(tmp_path.rglob("*escape*"))
    assert not (program.links / "org--evil").exists()


def test_a_file_that_is_also_a_folder_is_refused(hub, hub_env, make_program):
    hub.add("org/evil", "a", b"a file")
    hub.add("org/evil", "a/b", b"below it")
    program = make_program("hf://org/evil", env=hub_env, parallel=1).run()
    assert program.status == 17


def test_nonsense_of_a_hub(server, hub_env, make_program):
    server.put("/api/models/org/model/revision/main", b"<html>busy</html>")
    program = make_program("hf://org/model", env=hub_env).run()
    assert (program.status, program.outcome["params"]["reason"]) == (17, "json")


def test_an_object(objects, object_env, server, make_program):
    data = content(120_000)
    uri = objects.put("bucket", "path/to/wéights +1.bin", data)
    program = make_program(uri.replace(" ", "%20"), env=object_env).run()
    assert program.status == 0, program.lines
    assert (program.links / "wéights +1.bin").read_bytes() == data
    again = make_program(uri.replace(" ", "%20"), env=object_env).run()
    assert again.items["wéights +1.bin"]["fetched_files"] == 0
    assert [one.method for one in server.seen] == ["HEAD", "GET", "HEAD"]
    assert KEYS.secret_key not in program.text()
    assert KEYS.session_token not in program.text()


def test_objects_below_a_prefix(objects, object_env, server, make_program):
    objects.page = 2
    for name in ("a.txt", "b&c/d.txt", "b&c/e.txt", "f.txt"):
        objects.put("bucket", f"data/set/{name}", name.encode())
    objects.put("bucket", "data/set/folder/", b"")
    objects.put("bucket", "data/settee.txt", b"not asked for")
    program = make_program("s3://bucket/data/set", env=object_env).run()
    assert program.status == 0, program.lines
    assert tree(program.links / "set") == {
        name: name.encode() for name in ("a.txt", "b&c/d.txt", "b&c/e.txt", "f.txt")
    }
    slashed = make_program("s3://bucket/data/set/", env=object_env).run()
    assert slashed.items["set"]["fetched_files"] == 0
    gets = [one for one in server.seen if one.method == "GET" and one.path.startswith("/bucket/d")]
    assert len(gets) == 4
    server.put("/bucket/data/set/a.txt", b"changed")
    changed = make_program("s3://bucket/data/set/", env=object_env).run()
    assert changed.items["set"]["fetched_files"] == 1
    assert (changed.links / "set" / "a.txt").read_bytes() == b"changed"


def test_an_object_resumes_and_its_tag_is_its_hash(
    objects, object_env, server, make_program, tmp_path
):
    data = content(3_000_000)
    uri = objects.put("bucket", "big.bin", data, rate=60_000)
    first = make_program(uri, env=object_env).start()
    until(lambda: sum(sizes_of_partials(tmp_path)) > 20_000, words=first.progress)
    first.send(signal.SIGKILL)
    first.wait()
    server.files["/bucket/big.bin"].rate = None
    second = make_program(uri, env=object_env).run()
    assert second.status == 0
    assert server.asked("/bucket/big.bin")[-1].status == 206
    objects.put("bucket", "bad.bin", data, etag='"' + "0" * 32 + '"')
    bad = make_program("s3://bucket/bad.bin", env=object_env).run()
    assert bad.status == 13


def test_a_wrong_signature_and_no_object(objects, object_env, make_program):
    uri = objects.put("bucket", "x.bin", b"x")
    wrong = make_program(uri, env={**object_env, "AWS_SECRET_ACCESS_KEY": "wrong"}).run()
    assert (wrong.status, wrong.outcome["code"]) == (11, "auth")
    missing = make_program("s3://bucket/none", env=object_env).run()
    assert (missing.status, missing.outcome["code"]) == (10, "not_found")


def test_credentials_of_a_profile_and_public_buckets(server, make_program, tmp_path):
    objects = ObjectStore(server, KEYS)
    uri = objects.put("bucket", "x.bin", b"x")
    (tmp_path / "credentials").write_text(
        f"[lab]\naws_access_key_id = {KEYS.access_key}\n"
        f"aws_secret_access_key = {KEYS.secret_key}\naws_session_token = {KEYS.session_token}\n"
    )
    (tmp_path / "config").write_text(
        f"[profile lab]\nregion = eu-test-1\nendpoint_url = {server.url}\n"
    )
    env = {
        "AWS_PROFILE": "lab",
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }
    assert make_program(uri, env=env).run().status == 0
    objects.credentials = None
    public = make_program(uri, env={"AWS_ENDPOINT_URL": server.url}).run()
    assert public.status == 0


def test_keys_that_lead_elsewhere_are_refused(objects, object_env, make_program, tmp_path):
    objects.put("bucket", "set/../../escape", b"evil")
    program = make_program("s3://bucket/set/", env=object_env).run()
    assert (program.status, program.outcome["params"]["reason"]) == (17, "unsafe_path")
    assert not list(tmp_path.rglob("*escape*"))


def test_local_files_and_folders_are_linked(make_program, tmp_path):
    (tmp_path / "data set").mkdir()
    (tmp_path / "data set" / "a.txt").write_bytes(b"a")
    (tmp_path / "one.txt").write_bytes(b"one")
    program = make_program(f"file://{tmp_path}/data%20set", f"file://{tmp_path}/one.txt").run()
    assert program.status == 0
    assert (program.links / "data set").readlink() == tmp_path / "data set"
    assert (program.links / "one.txt").read_bytes() == b"one"
    missing = make_program(f"file://{tmp_path}/none").run()
    assert (missing.status, missing.outcome["code"]) == (10, "not_found")
    assert missing.outcome["params"] == {"path": f"{tmp_path}/none"}


def test_hashes_of_folders(hub, hub_env, make_program, tmp_path):
    """The same for a hub's folder and a local one: what sha256sum prints, hashed."""
    hub.add("org/model", "b.txt", b"bee")
    hub.add("org/model", "a/c.txt", b"sea", large=True)
    lines = [
        f"{hashlib.sha256(data).hexdigest()}  {path}\n"
        for path, data in (("a/c.txt", b"sea"), ("b.txt", b"bee"))
    ]
    right = "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()
    assert make_program(plans.Item("hf://org/model", hash=right), env=hub_env).run().status == 0
    wrong = make_program(plans.Item("hf://org/model", hash="sha256:" + "1" * 64), env=hub_env)
    assert wrong.run().status == 13
    assert not (wrong.links / "org--model").exists()
    (tmp_path / "model" / "a").mkdir(parents=True)
    (tmp_path / "model" / "b.txt").write_bytes(b"bee")
    (tmp_path / "model" / "a" / "c.txt").write_bytes(b"sea")
    local = f"file://{tmp_path}/model"
    assert make_program(plans.Item(local, hash=right)).run().status == 0
    assert make_program(plans.Item(local, hash="sha256:" + "1" * 64)).run().status == 13


def test_names_are_given_by_the_plan_or_the_fragment(server, make_program):
    one, two = server.put("/a/model.bin", b"one"), server.put("/b/model.bin", b"two")
    program = make_program(plans.Item(one, "teacher"), f"{two}#student.bin").run()
    assert program.status == 0
    assert (program.links / "teacher").read_bytes() == b"one"
    assert (program.links / "student.bin").read_bytes() == b"two"
    twice = make_program(one, two).run()
    assert (twice.status, twice.outcome["params"]) == (
        15,
        {"reason": "name_taken", "name": "model.bin"},
    )


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://host/file",
        "nonsense",
        "https:///file",
        "hf://",
        "s3:///key",
        "file:relative",
        "http://h",
    ],
)
def test_bad_addresses_end_it_before_anything_is_fetched(server, make_program, uri):
    program = make_program(server.put("/file.bin", b"x"), uri).run()
    assert (program.status, program.outcome["code"]) == (15, "bad_uri")
    assert not server.seen


def test_a_bad_plan(make_program):
    program = make_program()
    program.plan_file.write_text(json.dumps({"cache_dir": "relative", "items": []}))
    program.run()
    assert (program.status, program.outcome["code"]) == (2, "bad_plan")
