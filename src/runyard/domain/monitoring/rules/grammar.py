"""The expressions of alert rules: read once into a tree of numbers, names and known functions.

Nothing of Python is reachable: there are no attributes, subscripts, calls of anything else, powers
or ways to make long texts. What is read has a bounded size, and evaluating it is linear in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from runyard.domain.monitoring.rules.tokens import RuleError, Token, split
from runyard.domain.progress.names import canonical

DEEPEST = 30
MOST_WINDOWS = 6  # functions that look at a stretch of history

TEXT_NAMES = frozenset({"stage", "status", "phase", "owner", "name"})
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
# Of values at this moment: how many they take at least and at most
FUNCTIONS = {
    "abs": (1, 1),
    "min": (2, 8),
    "max": (2, 8),
    "isnan": (1, 1),
    "isinf": (1, 1),
}
# Of a metric over a stretch of time, such as avg(loss, 5m)
WINDOW_FUNCTIONS = frozenset(
    {"avg", "median", "lowest", "highest", "slope", "pct", "delta", "count"}
)
# Of a metric by its name
NAME_FUNCTIONS = frozenset({"since", "known", "metric"})
TRUTH_FUNCTIONS = frozenset({"isnan", "isinf", "known"})


class Kind(StrEnum):
    NUMBER = "a number"
    TRUTH = "a condition"
    TEXT = "a text"


@dataclass(frozen=True, slots=True)
class Node:
    """`op` is an operator, a function, or number, text, truth, name, words (a name of a text),
    fold (sums and products: `text` has the sign between each two parts)."""

    op: str
    kind: Kind
    parts: tuple[Node, ...] = ()
    value: float = 0.0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Expression:
    root: Node
    for_s: float  # how long it must hold, as far as the expression itself says so
    names: frozenset[str]  # metrics it needs
    texts: frozenset[str]  # of stage, status ...
    longest_window_s: float


def parse(expression: str) -> Expression:
    """RuleError says what is wrong and where."""
    reader = _Reader(split(expression))
    root = reader.condition()
    for_s = reader.hold()
    reader.finish()
    if root.kind is not Kind.TRUTH:
        raise RuleError(f"a rule is a condition such as loss > 10; this is {root.kind.value}")
    longest = max(reader.windows, default=0.0)
    return Expression(root, for_s, frozenset(reader.names), frozenset(reader.texts), longest)


class _Reader:
    """Or, and, not, comparison, sum, product, sign, value: each level calls the next."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self.names: set[str] = set()
        self.texts: set[str] = set()
        self.windows: list[float] = []

    def condition(self) -> Node:
        return self._chain(("or",), lambda: self._chain(("and",), self._negation, Kind.TRUTH))

    def hold(self) -> float:
        if not self._take("for"):
            return 0.0
        token = self._advance()
        if token.kind != "duration":
            raise RuleError("after 'for' stands a duration such as 5m", token.place)
        return token.value

    def finish(self) -> None:
        token = self._tokens[self._next]
        if token.kind != "end":
            raise RuleError(f"{token.text!r} is not expected here", token.place)

    # levels

    def _chain(
        self, signs: tuple[str, ...], below: Callable[[], Node], kind: Kind = Kind.TRUTH
    ) -> Node:
        parts, signs_used = [below()], ""
        while (token := self._take(*signs)) is not None:
            parts.append(below())
            _want(parts[-2], kind, token)
            _want(parts[-1], kind, token)
            signs_used += token.text if kind is Kind.NUMBER else ""
        if len(parts) == 1:
            return parts[0]
        # One node for a whole chain: its depth does not grow with its length.
        return Node(
            signs[0] if kind is Kind.TRUTH else "fold", kind, tuple(parts), text=signs_used
        )

    def _negation(self) -> Node:
        token = self._take("not")
        if token is None:
            return self._comparison()
        part = self._deeper(self._negation, token)
        _want(part, Kind.TRUTH, token)
        return Node("not", Kind.TRUTH, (part,))

    def _comparison(self) -> Node:
        left = self._sum()
        token = self._take(*COMPARISONS)
        if token is None:
            return left
        right = self._sum()
        if left.kind is not right.kind:
            what = f"{left.kind.value} cannot be compared with {right.kind.value}"
            raise RuleError(what, token.place)
        if left.kind is not Kind.NUMBER and token.text not in ("==", "!="):
            raise RuleError(f"only == and != compare {left.kind.value}", token.place)
        if (again := self._take(*COMPARISONS)) is not None:
            raise RuleError("write 'a < b and b < c' instead of a chain", again.place)
        return Node(token.text, Kind.TRUTH, (left, right))

    def _sum(self) -> Node:
        return self._chain(("+", "-"), self._product, Kind.NUMBER)

    def _product(self) -> Node:
        return self._chain(("*", "/", "%"), self._signed, Kind.NUMBER)

    def _signed(self) -> Node:
        token = self._take("-", "+")
        if token is None:
            return self._value()
        part = self._deeper(self._signed, token)
        _want(part, Kind.NUMBER, token)
        return Node("negative", Kind.NUMBER, (part,)) if token.text == "-" else part

    def _value(self) -> Node:
        token = self._advance()
        if token.kind in ("number", "duration"):
            return Node("number", Kind.NUMBER, value=token.value)
        if token.kind == "text":
            return Node("text", Kind.TEXT, text=token.text)
        if token.text in ("true", "false"):
            return Node("truth", Kind.TRUTH, value=float(token.text == "true"))
        if token.text == "(":
            inner = self._deeper(self.condition, token)
            self._expect(")")
            return inner
        if token.kind == "name":
            return self._call(token) if self._take("(") else self._named(token.text)
        early = token.kind == "end"
        said = "the expression ends too early" if early else f"{token.text!r} is no value"
        raise RuleError(said, token.place)

    # functions

    def _call(self, token: Token) -> Node:
        name = token.text
        if name in FUNCTIONS:
            return self._plain_call(name, token)
        if name in WINDOW_FUNCTIONS:
            return self._window_call(name, token)
        if name in NAME_FUNCTIONS:
            return self._name_call(name)
        known = ", ".join(sorted({*FUNCTIONS, *WINDOW_FUNCTIONS, *NAME_FUNCTIONS}))
        raise RuleError(f"there is no function {name!r}; known are {known}", token.place)

    def _plain_call(self, name: str, token: Token) -> Node:
        least, most = FUNCTIONS[name]
        parts = [self._deeper(self._sum, token)]
        while self._take(","):
            parts.append(self._deeper(self._sum, token))
            if len(parts) > most:
                break
        self._expect(")")
        if not least <= len(parts) <= most:
            raise RuleError(f"{name} takes {least} to {most} values", token.place)
        for part in parts:
            _want(part, Kind.NUMBER, token)
        kind = Kind.TRUTH if name in TRUTH_FUNCTIONS else Kind.NUMBER
        return Node(name, kind, tuple(parts))

    def _window_call(self, name: str, token: Token) -> Node:
        metric = self._metric_name()
        self._expect(",")
        length = self._advance()
        if length.kind != "duration":
            raise RuleError(f"{name} is written {name}(loss, 5m)", length.place)
        self._expect(")")
        self.windows.append(length.value)
        if len(self.windows) > MOST_WINDOWS:
            raise RuleError(f"at most {MOST_WINDOWS} functions over time", token.place)
        return Node(name, Kind.NUMBER, value=length.value, text=metric)

    def _name_call(self, name: str) -> Node:
        metric = self._metric_name()
        self._expect(")")
        if name == "metric":
            return Node("name", Kind.NUMBER, text=metric)
        kind = Kind.TRUTH if name in TRUTH_FUNCTIONS else Kind.NUMBER
        return Node(name, kind, text=metric)

    def _metric_name(self) -> str:
        """A text serves for names that hold a slash or a dash."""
        token = self._advance()
        if token.kind not in ("name", "text") or not token.text:
            raise RuleError("the name of a metric is wanted", token.place)
        metric = canonical(token.text)
        self.names.add(metric)
        return metric

    def _named(self, name: str) -> Node:
        if name in TEXT_NAMES:
            self.texts.add(name)
            return Node("words", Kind.TEXT, text=name)
        metric = canonical(name)  # `acc` and `eval_loss` are stored under their one name
        self.names.add(metric)
        return Node("name", Kind.NUMBER, text=metric)

    # tokens

    def _deeper(self, read: Callable[[], Node], token: Token) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise RuleError(f"nested more than {DEEPEST} deep", token.place)
        found = read()
        self._depth -= 1
        return found

    def _advance(self) -> Token:
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def _take(self, *signs: str) -> Token | None:
        token = self._tokens[self._next]
        if token.kind != "sign" or token.text not in signs:
            return None
        self._next += 1
        return token

    def _expect(self, sign: str) -> None:
        token = self._advance()
        if token.kind != "sign" or token.text != sign:
            shown = repr(token.text) if token.text else "its end"
            raise RuleError(f"{sign!r} is expected instead of {shown}", token.place)


def _want(node: Node, kind: Kind, token: Token) -> None:
    if node.kind is not kind:
        what = f"{token.text!r} works on {kind.value}, not on {node.kind.value}"
        raise RuleError(what, token.place)
