"""An application over a real socket, for as long as it is measured."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

_START_SECONDS = 20.0


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """The address on a free port of this machine. Raises: RuntimeError when it does not start."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + _START_SECONDS
    try:
        while not server.started:
            if not thread.is_alive() or time.monotonic() > end:
                raise RuntimeError("uvicorn did not start")
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        app.state.parts.closing.set()
        server.should_exit = True
        thread.join(10)
