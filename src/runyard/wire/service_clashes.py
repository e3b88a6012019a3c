"""What the services of one job must not do to each other, or to its ports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from runyard.domain.job_environment import variable_name
from runyard.wire import refusals


class Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def port(self) -> int | str: ...


def problems(
    services: Iterable[Named], port_names: Iterable[str], where: str
) -> list[dict[str, str]]:
    """Names that become the same variable, and ports that two want."""
    found = []
    names = {variable_name(name): f"the port {name}" for name in port_names}
    ports: dict[int, str] = {}
    for place, service in enumerate(services):
        field = f"{where}services[{place}]"
        variable = variable_name(service.name)
        if variable in names:
            words = f"{names[variable]} would become RUNYARD_PORT_{variable} as well"
            found.append(refusals.field(f"{field}.name", "duplicate", words))
        names.setdefault(variable, f"the service {service.name}")
        if not isinstance(service.port, int):
            continue
        if service.port in ports:
            words = f"{ports[service.port]} has port {service.port} already"
            found.append(refusals.field(f"{field}.port", "duplicate", words))
        ports.setdefault(service.port, f"the service {service.name}")
    return found
