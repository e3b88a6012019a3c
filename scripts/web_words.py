"""Write the words of the command line for the web page: one wording of every code, in two places.

`make words` runs it; a test of the architecture compares what is committed.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "zh")
FOLDER = Path(__file__).parent.parent / "web" / "src" / "words" / "server"
# Those sentences of the command line that other sentences are built from.
_PARTS = ("preparing_", "fetch_", "service_", "unavailable_")
_SINGLE = ("nobody", "holder", "another_server", "suggestion", "used_", "rank_first")

# Beside these the page has a button; which command does the same is for the command line to say.
_WITH_A_BUTTON = ("held", "dispatch_paused", "node_drained")


def words(language: str) -> dict[str, Any]:
    main = importlib.import_module(f"runyard.cli.words.{language}")
    repair = importlib.import_module(f"runyard.cli.words.repair_{language}")
    preflight = importlib.import_module(f"runyard.cli.words.preflight_{language}")
    messages = {
        key: text for key, text in main.MESSAGES.items() if key.startswith((*_PARTS, *_SINGLE))
    }
    return {
        "statuses": main.STATUSES,
        "nouns": main.NOUNS,
        "reasons": {code: _without_command(code, text) for code, text in main.REASONS.items()},
        "alerts": main.ALERTS,
        "deliveryErrors": main.DELIVERY_ERRORS,
        "warnings": main.WARNINGS,
        "errors": main.ERRORS,
        "messages": messages,
        "diagnoses": repair.DIAGNOSES,
        "plans": repair.PLANS,
        "giveUps": repair.GIVE_UPS,
        "next": repair.NEXT,
        "story": repair.STORY,
        "findings": preflight.FINDINGS,
    }


def _without_command(code: str, text: str) -> str:
    return text.partition(";")[0] if code in _WITH_A_BUTTON else text


def text(language: str) -> str:
    return json.dumps(words(language), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        (FOLDER / f"{language}.json").write_text(text(language), encoding="utf-8")


if __name__ == "__main__":
    main()
