"""The routes. May import every other layer."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import anyio
import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi import Path as PathPart
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from crashbo.app.bench import table
from crashbo.app.bench.bench import Asked, Conflict, Missing
from crashbo.app.bench.definition import Definition
from crashbo.app.server import guard
from crashbo.app.server.bodies import AddBody, AskBody, Body, LeaseBody, SessionBody, SliceBody, TellBody, VoidBody
from crashbo.app.server.live import Live
from crashbo.integrations.optuna.ledger import Entry
from crashbo.optimizer.records import Constraint, Trial
from crashbo.search.space import Choice, Int
from crashbo.version import __version__

PAGE = Path(__file__).parents[1] / "page"
_PING = 15.0  # seconds between keep-alive comments on an event stream
TrialNumber = Annotated[int, PathPart(ge=0, le=10**9, description="number of the trial")]


class Error(BaseModel):
    """The error in one sentence."""

    error: str


class _Csv(Response):
    media_type = "text/csv"


class _EventStream(StreamingResponse):
    media_type = "text/event-stream"


_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": Error} for code in (400, 401, 403, 404, 405, 409, 413, 415, 422, 503)
}


def create_app(live: Live, token: str | None) -> FastAPI:
    """The service of one study."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        live.start()
        yield
        await anyio.to_thread.run_sync(live.stop)

    app = FastAPI(
        title="crashbo bench",
        description="The next setting to try, and its outcome. See docs/bench.md.",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # both load scripts from the internet
        redoc_url=None,
        lifespan=lifespan,
        responses=_ERRORS,
    )
    _add_errors(app)
    _add_study(app, live)
    _add_trials(app, live)
    _add_session(app, token)
    _add_page(app)
    app.add_middleware(guard.Guard, token=token)
    return app


def _add_study(app: FastAPI, live: Live) -> None:
    @app.get("/api/state", summary="Everything at once: study, trials, what the models say about them")
    def state() -> Response:
        return _json(state_of(live))

    @app.get("/api/best", summary="The best trial so far, and what the models recommend")
    def best() -> Response:
        found = live.bench.best()
        recommended = live.picture.recommended if live.picture else None
        return _json({"best": found and asdict(found), "recommended": recommended})

    @app.get("/api/thresholds", summary="The levels at which the machine crashes, as learnt so far")
    def thresholds() -> Response:
        return _json({} if live.picture is None else {n: asdict(v) for n, v in live.picture.levels.items()})

    @app.get("/api/check", summary="What in the trials speaks against the models, and advice; null until it is known")
    def check() -> Response:
        return _json(findings_of(live))

    @app.get("/api/insight", summary="What the models say about the trials")
    def insight() -> Response:
        return _json(insight_of(live))

    @app.get("/api/trials.csv", summary="All trials as CSV", response_class=_Csv)
    def as_csv() -> Response:
        text = table.to_csv(live.bench.definition, live.bench.trials)
        return _Csv(text, headers={"content-disposition": 'attachment; filename="trials.csv"'})

    @app.post("/api/slice", summary="Cost and P(safe) over one or two parameters")
    def slice_(body: SliceBody) -> Response:
        found = live.slice(body.axes, dict(body.at), body.size)
        return _json(None if found is None else asdict(found))

    @app.get(
        "/api/events", summary="An event whenever something changes (server-sent events)", response_class=_EventStream
    )
    async def events(request: Request) -> StreamingResponse:
        return _EventStream(_events(live, request))


def _add_trials(app: FastAPI, live: Live) -> None:
    bench = live.bench

    def written(trial: Trial) -> Response:
        live.poke()
        return _json(asdict(trial))

    @app.get("/api/trials", summary="All trials")
    def trials() -> Response:
        return _json([entry_out(e) for e in bench.entries()])

    @app.get("/api/trials/{number}", summary="One trial")
    def trial(number: TrialNumber) -> Response:
        return _json(entry_out(bench.entry(number)))

    @app.post("/api/ask", summary="The next trial; repeating it with the same request id returns the same trial")
    async def ask(body: AskBody) -> Response:
        return written(await asyncio.wrap_future(live.asks.ask(Asked(body.request, body.lease))))

    @app.post("/api/trials", summary="Add a trial that was not asked for")
    def add(body: AddBody) -> Response:
        return written(bench.add(body.params, body.told(), request=body.request))

    @app.post("/api/trials/{number}/tell", summary="Tell the outcome of a trial; repeating it has no effect")
    def tell(number: TrialNumber, body: TellBody) -> Response:
        return written(bench.tell(number, body.told(), request=body.request))

    @app.post("/api/trials/{number}/void", summary="Tell that a fault ended a trial, unrelated to its parameters")
    def void(number: TrialNumber, body: VoidBody) -> Response:
        return written(bench.void(number, body.reason, request=body.request))

    @app.post("/api/trials/{number}/fix", summary="Correct a trial that was told")
    def fix(number: TrialNumber, body: TellBody) -> Response:
        return written(bench.fix(number, body.told()))

    @app.post("/api/trials/{number}/undo", summary="Undo the last report on a trial")
    def undo(number: TrialNumber, body: Body | None = None) -> Response:
        return written(bench.undo(number))

    @app.post("/api/trials/{number}/lease", summary="Extend the lease of a trial")
    def lease(number: TrialNumber, body: LeaseBody) -> Response:
        return _json({"until": bench.renew(number, body.seconds)})


def _add_session(app: FastAPI, token: str | None) -> None:
    @app.post(guard.SESSION, summary="Store the token in a cookie, for browsers", status_code=204)
    def session(body: SessionBody, response: Response) -> None:
        if token is None:
            return
        if not guard.same(body.token, token):
            raise HTTPException(401, "token must be that of this server. Look at where it was started.")
        response.set_cookie(guard.COOKIE, guard.cookie_of(token), httponly=True, samesite="strict", max_age=30 * 86400)


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", media_type="text/html")

    app.mount("/assets", StaticFiles(directory=PAGE), name="assets")


def _add_errors(app: FastAPI) -> None:
    def answers(kind: type[Exception], status: int, words: Callable[[Any], str] = str) -> None:
        async def handler(request: Request, error: Exception) -> JSONResponse:
            return JSONResponse({"error": words(error)}, status_code=status)

        app.add_exception_handler(kind, handler)

    answers(Missing, 404)
    answers(Conflict, 409)
    answers(ValueError, 422)
    answers(RequestValidationError, 422, _sentence)
    answers(
        BrokenProcessPool, 503, lambda _: "the process that fits the models must be alive; it was ended. Try again."
    )
    answers(guard.TooLarge, 413, lambda _: f"body must have at most {guard.LARGEST_BODY} bytes. Send less.")

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)

    app.add_exception_handler(HTTPException, http)


def _sentence(error: RequestValidationError) -> str:
    """The first error of a request, without repeating what was sent."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")[:60] or "body"
    if first["type"] == "json_invalid":
        return "body must be JSON; it cannot be read. Mend it."
    rule = {"missing": "must be given", "extra_forbidden": "must be left out: there is no such field"}
    words = rule.get(first["type"]) or str(first["msg"]).replace("Input should", "must", 1)
    return f"{where} {words}."


def state_of(live: Live) -> dict[str, Any]:
    """Everything that the page shows."""
    entries, best = live.bench.entries(), live.bench.best()
    return {
        **live.signs(),
        "study": study_out(live.bench.definition),
        "trials": [entry_out(e) for e in entries],
        "best": None if best is None else best.number,
        "insight": insight_of(live),
    }


def insight_of(live: Live) -> dict[str, Any] | None:
    """What the models say about the trials; None before one was told."""
    if live.picture is None:
        return None
    picture = {name: value for name, value in asdict(live.picture).items() if name != "digest"}
    return {
        **picture,
        "told": len(live.picture.digest),
        "findings": findings_of(live),
        "expected": {number: asdict(e) for number, e in live.expected.items()},
        "history": {name: [asdict(level) for level in levels] for name, levels in live.history.items()},
    }


def findings_of(live: Live) -> list[dict[str, Any]] | None:
    """What in the trials speaks against the models, the strongest first; then advice. None until it is known."""
    return None if live.findings is None else [asdict(finding) for finding in live.findings]


def study_out(definition: Definition) -> dict[str, Any]:
    """The definition of the study, for clients."""
    units, risk = definition.study.units, definition.options.get("risk")
    return {
        "name": definition.name,
        "direction": definition.study.direction,
        "cost": {"label": definition.label, "unit": units.get("cost", "")},
        "risk": None if risk is None else {"kind": type(risk).__name__, **vars(risk)},
        "parameters": [
            {
                "name": name,
                "unit": units.get(name, ""),
                **(
                    {"kind": "choice", "options": list(p.options)}
                    if isinstance(p, Choice)
                    else {"kind": "int" if isinstance(p, Int) else "float", "low": p.low, "high": p.high, "log": p.log}
                ),
            }
            for name, p in definition.space.parameters.items()
        ],
        "constraints": [
            {
                "name": c.name,
                "measured": isinstance(c, Constraint),
                "side": getattr(c, "side", "above"),
                "censored": c.censored,
                "unit": units.get(c.name, ""),
                "threshold": c.threshold,
            }
            for c in definition.study.constraints
        ],
    }


def entry_out(entry: Entry) -> dict[str, Any]:
    """A trial for clients."""
    more = {name: getattr(entry, name) for name in ("queued", "choosing", "open", "late", "lease", "at", "corrections")}
    return {**asdict(entry.trial), **more}


async def _events(live: Live, request: Request) -> AsyncIterator[str]:
    queue = live.listen()
    try:
        yield f"retry: 1000\nevent: changed\ndata: {json.dumps(live.signs())}\n\n"
        while not await request.is_disconnected():
            try:
                signs = await asyncio.wait_for(queue.get(), _PING)
                if signs is None:
                    return
                yield f"event: changed\ndata: {json.dumps(signs)}\n\n"
            except TimeoutError:
                yield ": still here\n\n"
    finally:
        live.leave(queue)


def _json(data: Any) -> Response:
    return Response(json.dumps(_plain(data), ensure_ascii=False), media_type="application/json")


def _plain(value: Any) -> Any:
    """Plain values for JSON; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(key): _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
