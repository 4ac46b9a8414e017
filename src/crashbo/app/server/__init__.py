"""The HTTP service and its page, with FastAPI and uvicorn. May import every other layer.

| file | holds |
|---|---|
| bodies | what clients may send, with limits |
| answers | what they get |
| gate | access control (token, host, body size) and response headers |
| ask_queue | requests that wait for a trial |
| live | the current state of the study, models included; tells listeners when it changes |
| api | the routes |
| serve | the address to listen on, and the server loop |
"""

from crashbo.extras import needs

needs("crashbo.app.server", "app", "fastapi", "uvicorn")
