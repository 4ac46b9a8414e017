"""The HTTP service and its page: FastAPI and uvicorn have their door here. May import every other layer.

| file | holds |
|---|---|
| bodies | what clients may send, with limits |
| guard | who may come in: token, host, body size; what goes out with every answer |
| ask_queue | those who wait for a trial |
| live | what is known of the study right now, models included; tells listeners when it changes |
| api | the routes |
| serve | the address to listen on, and the loop |
"""
