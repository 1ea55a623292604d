"""Two sha256 digests in the time of one: the processor's instructions for it wait for one another, so two fit side by side.

A round of sha256 needs the one before it, and leaves a core idle for most of the time. Two messages on one thread keep
it busy; docs/decisions/0004 has the figures, and says why hashlib still takes every digest that has no other beside it.
"""

import hashlib
from functools import cache
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

from ninfer_core.kernels.cache import kernel

BLOCK: Final = 64
FEATURES: Final = frozenset({"+sha", "+ssse3", "+sse4.1"})
_PRIMES: Final = [n for n in range(2, 312) if all(n % d for d in range(2, n))]  # the first 64

Bytes = NDArray[np.uint8]
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_WORDS = ir.VectorType(_I32, 4)


def _fraction(prime: int, root: int) -> int:
    """The first 32 bits behind the point of a root of `prime` (FIPS 180-4, 4.2.2 and 5.3.3)."""
    found = 0
    for bit in reversed(range(40)):
        if (found | 1 << bit) ** root <= prime << (32 * root):
            found |= 1 << bit
    return found & 0xFFFFFFFF


_ROUNDS: Final = [_fraction(prime, 3) for prime in _PRIMES]
_START: Final = [_fraction(prime, 2) for prime in _PRIMES[:8]]
_KEPT: Final = (5, 4, 1, 0, 7, 6, 3, 2)  # the instructions keep a to h as f, e, b, a and h, g, d, c


def _vector(*words: int) -> ir.Constant:
    return ir.Constant(_WORDS, list(words))


def _emit(builder: Any, states: list[Any], messages: list[Any], blocks: Any) -> None:
    """Advance every state over `blocks` > 0 blocks of its own message; all are addresses."""

    def instruction(name: str, *given: Any) -> Any:
        signature = ir.FunctionType(_WORDS, [_WORDS] * len(given))
        return builder.call(builder.module.declare_intrinsic(f"llvm.{name}", (), signature), given)

    def lanes(low: Any, high: Any, *places: int) -> Any:
        return builder.shuffle_vector(low, high, _vector(*places))

    def at(address: Any, words: int) -> Any:
        return builder.gep(address, [ir.Constant(_I32, words)])

    held = [builder.inttoptr(state, _WORDS.as_pointer()) for state in states]
    places = [at(state, half) for state in held for half in (0, 1)]
    before = [builder.load(place, align=4) for place in places]
    entry, body = builder.block, builder.append_basic_block("sha256.block")
    builder.branch(body)
    builder.position_at_end(body)
    number = builder.phi(_I64)
    number.add_incoming(ir.Constant(_I64, 0), entry)
    kept = [builder.phi(_WORDS) for _ in before]
    for phi, value in zip(kept, before, strict=True):
        phi.add_incoming(value, entry)
    offset = builder.mul(number, ir.Constant(_I64, BLOCK))
    words = []
    for message in messages:
        block = builder.inttoptr(builder.add(message, offset), _WORDS.as_pointer())
        words.append(
            [instruction("bswap.v4i32", builder.load(at(block, part), align=1)) for part in range(4)]
        )
    now: list[Any] = list(kept)
    for four in range(16):
        # Message by message within each step: next to each other in the code, they overlap in the processor.
        part = four % 4
        keys = _vector(*_ROUNDS[4 * four : 4 * four + 4])
        sums = [builder.add(message[part], keys) for message in words]
        for lane, given in enumerate(sums):
            now[2 * lane + 1] = instruction("x86.sha256rnds2", now[2 * lane + 1], now[2 * lane], given)
        for lane, given in enumerate(sums):
            upper = lanes(given, given, 2, 3, 2, 3)
            now[2 * lane] = instruction("x86.sha256rnds2", now[2 * lane], now[2 * lane + 1], upper)
        if four < 12:
            for message in words:
                first, second, third, last = (message[(part + step) % 4] for step in range(4))
                mixed = builder.add(
                    instruction("x86.sha256msg1", first, second), lanes(third, last, 1, 2, 3, 4)
                )
                message[part] = instruction("x86.sha256msg2", mixed, last)
    after = [builder.add(old, new) for old, new in zip(kept, now, strict=True)]
    following = builder.add(number, ir.Constant(_I64, 1))
    number.add_incoming(following, body)
    for phi, value in zip(kept, after, strict=True):
        phi.add_incoming(value, body)
    done = builder.append_basic_block("sha256.done")
    builder.cbranch(builder.icmp_signed("<", following, blocks), body, done)
    builder.position_at_end(done)
    for place, value in zip(places, after, strict=True):
        builder.store(value, place, align=4)


def _one_message(context: Any, state: Any, message: Any, blocks: Any) -> Any:
    def generate(target: Any, builder: Any, signature: Any, given: Any) -> Any:
        _emit(builder, [given[0]], [given[1]], given[2])
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _two_messages(context: Any, state: Any, message: Any, other_state: Any, other: Any, blocks: Any) -> Any:
    def generate(target: Any, builder: Any, signature: Any, given: Any) -> Any:
        _emit(builder, [given[0], given[2]], [given[1], given[3]], given[4])
        return target.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


_one: Any = intrinsic(_one_message)
_two: Any = intrinsic(_two_messages)


@kernel
def advance(state: Any, message: Any) -> None:
    """Advance `state`, uint32 [8], over every whole block of `message`, uint8."""
    blocks = np.int64(message.size // 64)
    if blocks:
        _one(np.int64(state.ctypes.data), np.int64(message.ctypes.data), blocks)


@kernel
def advance_both(state: Any, message: Any, other_state: Any, other: Any) -> None:
    """The same for two states, over as many blocks as the shorter message holds."""
    blocks = np.int64(min(message.size, other.size) // 64)
    if blocks:
        _two(
            np.int64(state.ctypes.data),
            np.int64(message.ctypes.data),
            np.int64(other_state.ctypes.data),
            np.int64(other.ctypes.data),
            blocks,
        )


class Sha256:
    """A digest in the making, to be used by one thread; only where `proved`."""

    __slots__ = ("_count", "_rest", "_state")

    def __init__(self) -> None:
        self._state = np.array([_START[place] for place in _KEPT], np.uint32)
        self._rest = np.empty(BLOCK, np.uint8)  # the message behind its last whole block
        self._count = 0

    def update(self, piece: memoryview) -> None:
        """See `hashlib`."""
        message = self._complete(np.frombuffer(piece, np.uint8))
        advance(self._state, message)
        self._keep(message[message.size // BLOCK * BLOCK :])

    def hexdigest(self) -> str:
        """See `hashlib`; more may follow."""
        held = self._count % BLOCK
        end = bytes(self._rest[:held]) + b"\x80" + bytes((BLOCK - 9 - held) % BLOCK)
        state = self._state.copy()
        advance(state, np.frombuffer(bytearray(end + (8 * self._count).to_bytes(8, "big")), np.uint8))
        words = dict(zip(_KEPT, state.tolist(), strict=True))
        return "".join(f"{words[place]:08x}" for place in range(8))

    def _complete(self, message: Bytes) -> Bytes:
        """The message from the next whole block on, once the block that was begun is full."""
        held = self._count % BLOCK
        self._count += message.size
        head = message[: -held % BLOCK]
        self._rest[held : held + head.size] = head
        if head.size and held + head.size == BLOCK:
            advance(self._state, self._rest)
        return message[head.size :]

    def _keep(self, rest: Bytes) -> None:
        if rest.size:  # else what is kept may be a block that is not full yet
            self._rest[: rest.size] = rest


def update_both(one: Sha256, other: Sha256, piece: memoryview) -> None:
    """Feed the same bytes to both, wherever in a block each of them is."""
    message = np.frombuffer(piece, np.uint8)
    left, right = one._complete(message), other._complete(message)
    advance_both(one._state, left, other._state, right)
    done = min(left.size, right.size) // BLOCK * BLOCK
    for digest, rest in ((one, left[done:]), (other, right[done:])):
        advance(digest._state, rest)  # one of them may hold a block more
        digest._keep(rest[rest.size // BLOCK * BLOCK :])


def available() -> bool:
    """Whether compiled code may have these instructions; without them the compiler would end the process."""
    return set(cpu_target.target_context.codegen().magic_tuple()[2].split(",")) >= FEATURES


@cache
def proved() -> bool:
    """Whether the instructions are there, and the digests that they give were found to be hashlib's in this process."""
    if not available():
        return False
    message = bytes(range(256)) * 3
    for begin in (0, 1, 9, 55, 64, 119):  # how far the second message is behind the first
        for length in (1, 55, 56, 63, 64, 65, 127, 128, 500):
            one, other = Sha256(), Sha256()
            one.update(memoryview(bytearray(message[:begin])))
            update_both(one, other, memoryview(bytearray(message[begin : begin + length])))
            known = [
                hashlib.sha256(part).hexdigest()
                for part in (message[: begin + length], message[begin:][:length])
            ]
            if [one.hexdigest(), other.hexdigest()] != known:
                return False
    return True
