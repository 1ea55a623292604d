"""Single words that a value depends on: read before anything is made, and judged."""

from typing import Protocol

from ninfer_core import strict_json
from ninfer_core.documents.templates import Assignment, fill
from ninfer_core.findings import Findings
from ninfer_core.recipes.bundles import Part, PartTree
from ninfer_core.recipes.nodes import Invert, Node, Tensor
from ninfer_core.recipes.rules import Rule
from ninfer_core.recipes.scalars import fault_of_reciprocal, fault_of_scale, reciprocal


class Reading(Protocol):
    """The sources of a recipe under one assignment of variables."""

    @property
    def values(self) -> Assignment: ...

    def word(self, node: Node) -> int:
        """The first word of a tree. Raises: CutShort, CannotRead."""
        ...


class Judge:
    """Judges words of the objects of rules; what is wrong with one is a finding about the source."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def words_equal(self, of: tuple[Tensor, ...], rule: Rule, name: str, reading: Reading) -> bool:
        words = {fill(leaf.name, reading.values): reading.word(leaf) for leaf in of}
        if len(set(words.values())) == 1:
            return True
        shown = ", ".join(f"{tensor} {_hex(word)}" for tensor, word in words.items())
        self._findings.add(
            "source.words_differ",
            f"{strict_json.show(name)} is one word that {len(words)} tensors of {of[0].role} must share: {shown}.",
            object=name,
            where={
                "role": of[0].role,
                "tensors": list(words),
                "words": [_hex(word) for word in words.values()],
                "rule": rule.path,
            },
            expected="one word",
            found=", ".join(dict.fromkeys(map(_hex, words.values()))),
        )
        return False

    def is_invertible(self, of: Node, rule: Rule, name: str, reading: Reading) -> bool:
        word = reading.word(of)
        fault = fault_of_reciprocal(word)
        if fault is not None:
            self._findings.add(
                "source.not_invertible",
                f"{strict_json.show(name)} is the reciprocal of the word {_hex(word)}, which is {fault}.",
                object=name,
                where={"word": _hex(word), "rule": rule.path},
                expected="a finite positive number with a finite reciprocal",
                found=_hex(word),
            )
        return fault is None

    def part(self, part: PartTree, rule: Rule, name: str, reading: Reading) -> Part | None:
        prefix = fill(part.prefix, reading.values)
        node = part.divisor
        if node is None:
            return Part(part.role, prefix, None, None)
        if isinstance(node, Invert):
            if not self.is_invertible(node.of, rule, name, reading):
                return None
            word = reading.word(node.of)
            return Part(part.role, prefix, word, reciprocal(word)[0])
        word = reading.word(node)
        if (fault := fault_of_scale(word)) is not None:
            self._findings.add(
                "source.bundle_word_invalid",
                f"{strict_json.show(name)}: the divisor {_hex(word)} of {prefix} is {fault}.",
                object=name,
                where={"role": part.role, "prefix": prefix, "field": "divisor", "rule": rule.path},
                expected="a finite positive number",
                found=_hex(word),
            )
            return None
        return Part(part.role, prefix, word, word)

    def divisors_equal(self, parts: tuple[Part, ...], rule: Rule, name: str) -> bool:
        words = [part.divisor_word for part in parts if part.divisor_word is not None]
        if len(set(words)) <= 1:
            return True
        shown = ", ".join(f"{part.prefix} {_hex(word)}" for part, word in zip(parts, words, strict=True))
        self._findings.add(
            "source.divisors_differ",
            f"{strict_json.show(name)} joins {len(parts)} matrices with different divisors: {shown}.",
            object=name,
            where={
                "role": parts[0].role,
                "parts": [part.prefix for part in parts],
                "words": [_hex(word) for word in words],
                "rule": rule.path,
            },
            expected="one divisor word",
            found=", ".join(dict.fromkeys(map(_hex, words))),
        )
        return False


def _hex(word: int) -> str:
    return f"0x{word:08x}"
