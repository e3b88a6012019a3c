"""The surface of the API is under review: a changed list of operations is a changed file."""

from pathlib import Path

SNAPSHOT = Path(__file__).with_name("openapi_operations.txt")


def page_of(served):
    return served.call("GET", "/openapi.json").body


def operations(page):
    return sorted(
        f"{operation['operationId']} {method.upper()} {path}"
        for path, methods in page["paths"].items()
        for method, operation in methods.items()
    )


def test_operations_are_the_reviewed_ones(served):
    """When this fails because a route was meant to change, write the new list into the file."""
    found = "\n".join(operations(page_of(served))) + "\n"
    assert found == SNAPSHOT.read_text()


def test_operation_ids_are_unique(served):
    ids = [line.split()[0] for line in operations(page_of(served))]
    assert len(set(ids)) == len(ids)


def test_every_reference_leads_somewhere(served):
    page = page_of(served)
    known = set(page["components"]["schemas"])
    todo, wanted = [page], set()
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                wanted.add(node["$ref"].removeprefix("#/components/schemas/"))
            todo += node.values()
        elif isinstance(node, list):
            todo += node
    assert wanted <= known


def test_the_body_of_a_submit_is_described(served):
    page = page_of(served)
    body = page["paths"]["/api/v1/training/jobs"]["post"]["requestBody"]
    assert body["content"]["application/json"]["schema"]["$ref"].endswith("/JobSubmission")
    fields = page["components"]["schemas"]["JobSubmission"]["properties"]
    assert {"command", "gpu_count", "depends_on", "params", "env_vars"} <= set(fields)


def test_an_answer_has_the_fields_the_page_promises(served):
    job = served.running()
    fields = page_of(served)["components"]["schemas"]["JobAnswer"]["required"]
    assert set(served.job(job)) == set(fields)
    attempt = page_of(served)["components"]["schemas"]["AttemptAnswer"]["required"]
    assert set(served.job(job)["attempt"]) == set(attempt)
    logs = page_of(served)["components"]["schemas"]["LogsAnswer"]["required"]
    assert set(served.api("GET", f"/jobs/{job}/logs").body) == set(logs)


def test_the_page_for_people_needs_no_network(served):
    page = served.call("GET", "/docs")
    assert page.headers["Content-Type"].startswith("text/html")
    text = page.data.decode()
    assert "/api/v1/training/jobs" in text
    assert "src=" not in text
    assert "http://" not in text
    assert "https://" not in text
