"""Prints the kept results as one Markdown table; `--write` puts it into docs/performance.md."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"


def table() -> str:
    results = [json.loads(path.read_text()) for path in sorted((HERE / "results").glob("*.json"))]
    if not results:
        return "Not measured yet for this release: run `make bench`."
    machine = results[0]["machine"]
    day = time.strftime("%Y-%m-%d", time.gmtime(max(result["at"] for result in results)))
    lines = [f"Measured on {day}: {machine['cores']} cores, Python {machine['python']}.", ""]
    for result in results:
        lines += [result["question"].strip(), ""]
        lines += [f"Load average when it was done: {result['machine']['load']:.1f}.", ""]
        lines += ["| figure | value | goal |", "|---|---|---|"]
        for figure in result["figures"]:
            value = f"{shown(figure)} {figure['unit']}".strip()
            lines.append(f"| {figure['name']} | {value} | {figure['goal']} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def shown(figure: dict[str, Any]) -> str:
    """What was counted is told without decimals."""
    value = float(figure["value"])
    counted = figure["unit"] == "" or figure["unit"].startswith("of ")
    return f"{value:,.0f}" if counted and value.is_integer() else f"{value:,.2f}"


def main() -> None:
    text = table()
    print(text)
    if "--write" in sys.argv:
        page = PAGE.read_text()
        before, rest = page.split(BEGIN, 1)
        after = rest.split(END, 1)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
