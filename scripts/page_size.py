"""What the web page weighs as it travels: the first page, and what each further part adds."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
BUILT = REPOSITORY / "src" / "runyard" / "web"
PARTS = REPOSITORY / "build" / "web-parts.json"
HOME = "src/views/NowView.vue"
# Drawn by every page: the other language is loaded by nobody.
WORDS = {
    "en": ("src/words/en.ts", "src/words/server/en.json"),
    "zh": ("src/words/zh.ts", "src/words/server/zh.json", "locale/lang/zh-cn"),
}


@dataclass(frozen=True)
class Part:
    """A file with all that it needs at once."""

    source: str
    files: frozenset[str]


class Page:
    def __init__(self, built: Path = BUILT, parts: Path = PARTS) -> None:
        self.built = built
        self.parts: dict[str, dict[str, Any]] = json.loads(parts.read_text(encoding="utf-8"))

    def at_once(self, name: str) -> frozenset[str]:
        """The file, what it imports, and the styles of these."""
        found: set[str] = set()
        todo = [name]
        while todo:
            one = todo.pop()
            if one in found or one not in self.parts:
                continue
            found.add(one)
            todo += self.parts[one]["imports"]
        return frozenset(found | {style for one in found for style in self.parts[one]["styles"]})

    def named(self, source: str) -> str:
        """The file whose source ends so."""
        for name, part in self.parts.items():
            told = (part["source"] or "").removesuffix(".mjs").removesuffix(".js")
            if told == source or told.endswith(f"/{source}"):
                return name
        raise KeyError(f"no part of the page is made from {source}")

    def first(self, language: str) -> frozenset[str]:
        """Everything that /now needs before it is whole."""
        entry = next(name for name, part in self.parts.items() if part["entry"])
        sources = (HOME, *WORDS[language])
        loaded = self.at_once(entry)
        for source in sources:
            loaded |= self.at_once(self.named(source))
        return loaded | {"index.html", "theme.js", "favicon.svg"}

    def later(self) -> list[Part]:
        """Each part that is loaded when it is asked for, with what it adds to the first page."""
        first = self.first("en") | self.first("zh")
        wanted = {name for part in self.parts.values() for name in part["later"]}
        found = [
            Part(self.parts[name]["source"] or name, self.at_once(name) - first) for name in wanted
        ]
        return sorted((part for part in found if part.files), key=self.weight, reverse=True)

    def weight(self, part: Part) -> int:
        return self.bytes(part.files)

    def bytes(self, files: frozenset[str]) -> int:
        return sum(self._packed(name) for name in files)

    def _packed(self, name: str) -> int:
        content = (self.built / name).read_bytes()
        return min(len(content), len(gzip.compress(content, 9)))


def main() -> None:
    page = Page()
    for language in WORDS:
        files = page.first(language)
        print(f"first page, {language}: {page.bytes(files) / 1000:.1f} kB in {len(files)} files")
    for part in page.later():
        print(f"{page.weight(part) / 1000:8.1f} kB  {len(part.files):3} files  {part.source}")


if __name__ == "__main__":
    main()
