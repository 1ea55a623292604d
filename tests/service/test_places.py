"""Places for what clients send slowly: one project never has them all."""

import asyncio
from contextlib import AsyncExitStack

from service.places import Places


async def entered(stack: AsyncExitStack, places: Places, project: str) -> bool:
    """Whether there is a place at once."""
    try:
        async with asyncio.timeout(0.02):
            await stack.enter_async_context(places.of(project))
    except TimeoutError:
        return False
    return True


def test_some_are_left_for_others() -> None:
    async def crowd() -> list[bool]:
        places = Places(8)
        async with AsyncExitStack() as others, AsyncExitStack() as own:
            first = await own.enter_async_context(AsyncExitStack())
            found = [await entered(first, places, "a")]
            found += [await entered(own, places, "a") for _ in range(6)]
            found += [await entered(others, places, "b") for _ in range(3)]
            await first.aclose()
            found.append(await entered(own, places, "a"))
        async with AsyncExitStack() as again:
            found += [await entered(again, places, "a") for _ in range(6)]
        return found

    found = asyncio.run(crowd())
    assert found == [True] * 6 + [False] + [True] * 2 + [False] + [True] + [True] * 6


def test_the_only_one_is_for_everybody() -> None:
    async def turns() -> list[bool]:
        places, found = Places(1), []
        for project in "aba":
            async with AsyncExitStack() as stack:
                found += [await entered(stack, places, project), await entered(stack, places, "c")]
        return found

    assert asyncio.run(turns()) == [True, False] * 3
