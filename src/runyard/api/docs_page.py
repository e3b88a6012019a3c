"""The API for people, as one page that needs nothing from the network."""

from __future__ import annotations

from html import escape
from typing import Any

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
code,pre{font:13px/1.45 ui-monospace,monospace;background:#f3f4f6;padding:.1em .3em}
pre{padding:.8em;overflow:auto}summary{cursor:pointer;padding:.35em 0}
details{border-bottom:1px solid #e5e7eb}b{display:inline-block;min-width:4.5em}
td{padding:.15em 1em .15em 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}code,pre{background:#222}}
"""


def render(page: dict[str, Any]) -> str:
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(page['info']['title'])}"
        f"</title><style>{_STYLE}</style><h1>{escape(page['info']['title'])} "
        f"{escape(page['info']['version'])}</h1><p>{escape(page['info'].get('description', ''))}"
        "</p><p>For programs: <a href=openapi.json>openapi.json</a></p><h2>Requests</h2>"
    ]
    for path, operations in page["paths"].items():
        parts += [_operation(method, path, found) for method, found in operations.items()]
    parts.append("<h2>Shapes</h2>")
    parts += [_shape(name, found) for name, found in sorted(page["components"]["schemas"].items())]
    return "".join(parts)


def _operation(method: str, path: str, found: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(one['name'])}</code><td>{escape(one['in'])}"
        f"<td>{escape(one.get('description', ''))}"
        for one in found.get("parameters", ())
    )
    links = [_link(schema) for schema in _schemas(found) if schema]
    said = escape(found.get("description") or found.get("summary") or "")
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code></summary>"
        f"<p>{said}</p><table>{rows}</table><p>{' '.join(links)}</p></details>"
    )


def _schemas(found: dict[str, Any]) -> list[str]:
    bodies = [found.get("requestBody", {}), *found.get("responses", {}).values()]
    names = []
    for body in bodies:
        schema = body.get("content", {}).get("application/json", {}).get("schema", {})
        reference = schema.get("$ref") or schema.get("items", {}).get("$ref", "")
        names.append(reference.rpartition("/")[2])
    return list(dict.fromkeys(names))


def _link(name: str) -> str:
    return f'<a href="#{escape(name)}">{escape(name)}</a>'


def _shape(name: str, found: dict[str, Any]) -> str:
    needed = set(found.get("required", ()))
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code>{'' if field in needed else ' (optional)'}"
        f"<td>{escape(_kind(schema))}<td>{escape(schema.get('description', ''))}"
        for field, schema in found.get("properties", {}).items()
    )
    return (
        f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        f"<p>{escape(found.get('description', ''))}</p><table>{rows}</table></details>"
    )


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", schema.get("const", "anything")))
