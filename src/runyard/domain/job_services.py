"""Which of an attempt's ports belong to the services of its job: those behind the job's own."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.domain import errors
from runyard.domain.job import JobSpec, Service

_HOST_NETWORK = "host"  # as engines call it


def pooled(services: Sequence[Service]) -> int:
    """How many ports of the pool they need."""
    return sum(1 for service in services if service.port is None)


def own_port_count(spec: JobSpec) -> int:
    """Ports that the job asked for itself."""
    return spec.request.port_count - pooled(spec.services)


def own_ports(spec: JobSpec, granted: tuple[int, ...]) -> tuple[int, ...]:
    return granted[: len(granted) - pooled(spec.services)]


def ports(spec: JobSpec, granted: tuple[int, ...]) -> dict[str, int]:
    """The port of each service, by its name."""
    given = iter(granted[len(own_ports(spec, granted)) :])
    return {
        service.name: next(given) if service.port is None else service.port
        for service in spec.services
    }


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def refuse_own_networks(spec: JobSpec, container_network: str) -> None:
    """In containers with a network of their own services would find neither each other nor their
    job on loopback, and an engine takes connections to a port whoever is behind it: InvalidJob."""
    if spec.image is None or not spec.services or container_network == _HOST_NETWORK:
        return
    message = (
        "services of a job with an image need the network of the machine, and this server's "
        f"containers have docker_network = {container_network}: it must be host"
    )
    found = {"field": "services", "code": "services_need_host_network", "message": message}
    raise errors.InvalidJob(f"The job is not valid: services: {message}.", fields=[found])


def refuse_ports_of_the_pool(spec: JobSpec, port_range: tuple[int, int]) -> None:
    """A fixed port that the server may at any time give to another job: InvalidJob."""
    first, last = port_range
    fields = [
        {
            "field": f"services[{place}].port",
            "code": "port_of_the_pool",
            "message": f"{service.port} is one of the ports {first}-{last} that are given out: "
            "use auto, or one outside",
        }
        for place, service in enumerate(spec.services)
        if service.port is not None and first <= service.port <= last
    ]
    if fields:
        said = "; ".join(f"{found['field']}: {found['message']}" for found in fields)
        raise errors.InvalidJob(f"The job is not valid: {said}.", fields=fields)
