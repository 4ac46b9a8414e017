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
from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as PathPart
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from crashbo.app import report
from crashbo.app.bench import table
from crashbo.app.bench.bench import Asked
from crashbo.app.bench.checks import Conflict, Missing
from crashbo.app.server import gate
from crashbo.app.server.answers import (
    BestAnswer,
    ComparisonAnswer,
    EntryAnswer,
    Error,
    FindingAnswer,
    GuardAnswer,
    HaltAnswer,
    ImportAnswer,
    InsightAnswer,
    KnownState,
    LeaseAnswer,
    LevelAnswer,
    RankedAnswer,
    SliceAnswer,
    StateAnswer,
    StudyAnswer,
    TrialAnswer,
    comparison_out,
    entry_out,
    findings_of,
    guard_of,
    insight_of,
    plan_out,
    state_of,
    studies_of,
)
from crashbo.app.server.bodies import (
    ONE,
    SEVERAL,
    AddBody,
    AskBody,
    Body,
    FixBody,
    HaltBody,
    ImportBody,
    LeaseBody,
    PreferBody,
    SessionBody,
    SliceBody,
    TellBody,
    UndoBody,
    UnpreferBody,
    VoidBody,
    WishBody,
)
from crashbo.app.server.live import Live
from crashbo.optimizer.records import Trial
from crashbo.version import __version__

PAGE = Path(__file__).parents[1] / "page"
_PING = 15.0  # seconds between keep-alive comments on an event stream
Boot = Annotated[str, Query(max_length=64, description="of the last answer, for what has changed since")]
Edition = Annotated[int, Query(ge=0, le=10**12, description="of the last answer, likewise")]
TrialNumber = Annotated[int, PathPart(ge=0, le=10**9, description="number of the trial")]


class _Csv(Response):
    media_type = "text/csv"


class _EventStream(StreamingResponse):
    media_type = "text/event-stream"


_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": Error} for code in (400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 503, 507)
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
        description="The next setting to try, and its outcome.",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # both load scripts from the internet
        redoc_url=None,
        lifespan=lifespan,
        responses=_ERRORS,
    )
    _add_errors(app)
    _add_study(app, live)
    _add_models(app, live)
    _add_tables(app, live)
    _add_trials(app, live)
    _add_corrections(app, live)
    _add_comparisons(app, live)
    slowly = gate.Brake()
    _add_session(app, token, slowly)
    _add_page(app)
    _declare_token(app, token)
    app.add_middleware(gate.Gate, token=token, slowly=slowly, films=live.films.origin)
    return app


def _declare_token(app: FastAPI, token: str | None) -> None:
    """Let the OpenAPI document say how a token is sent."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()
        bearer = {"type": "http", "scheme": "bearer", "description": "The token that the server was started with."}
        document.setdefault("components", {})["securitySchemes"] = {"token": bearer}
        document["security"] = [{"token": []}] if token is not None else []
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _add_study(app: FastAPI, live: Live) -> None:
    @app.get(
        "/api/state",
        summary="Everything at once: study, trials, what the models say about them; or what is new since an answer",
        response_model=StateAnswer,
    )
    def state(boot: Boot = "", trials: Edition = 0, insight: Edition = 0) -> Response:
        return _json(state_of(live, KnownState(boot, trials, insight)))

    @app.get("/api/studies", summary="All studies in the store", response_model=list[StudyAnswer])
    def studies() -> Response:
        return _json(studies_of(live))

    @app.post("/api/halt", summary="Hand out no more trials, until resumed", response_model=HaltAnswer)
    def halt(body: HaltBody) -> Response:
        live.bench.halt(body.why, who=body.who)
        live.poke()
        return _json({"halted": live.bench.halted})

    @app.post("/api/resume", summary="Hand out trials again", response_model=HaltAnswer)
    def resume(body: Body | None = None) -> Response:
        live.bench.resume()
        live.poke()
        return _json({"halted": live.bench.halted})

    @app.get(
        "/api/events", summary="An event whenever something changes (server-sent events)", response_class=_EventStream
    )
    async def events(request: Request) -> StreamingResponse:
        return _EventStream(_events(live, request))


def _add_models(app: FastAPI, live: Live) -> None:
    @app.get("/api/best", summary="The best trial so far, and what the models recommend", response_model=BestAnswer)
    def best() -> Response:
        found = live.bench.best()
        recommended = live.picture.recommended if live.picture else None
        front = live.picture.front if live.picture else None
        return _json({"best": found and asdict(found), "front": front, "recommended": recommended})

    @app.get(
        "/api/thresholds",
        summary="The levels at which the machine crashes, as learnt so far",
        response_model=dict[str, LevelAnswer],
    )
    def thresholds() -> Response:
        return _json({} if live.picture is None else {n: asdict(v) for n, v in live.picture.levels.items()})

    @app.get(
        "/api/check",
        summary="What in the trials speaks against the models, and advice; null until it is known",
        response_model=list[FindingAnswer] | None,
    )
    def check() -> Response:
        return _json(findings_of(live))

    @app.get("/api/guard", summary="Readings at which to stop any trial that runs", response_model=GuardAnswer)
    def guard() -> Response:
        return _json(guard_of(live))

    @app.get("/api/trials/{number}/guard", summary="Readings at which to stop this trial", response_model=GuardAnswer)
    def guard_one(number: TrialNumber) -> Response:
        return _json(guard_of(live, live.bench.entry(number).trial))

    @app.get("/api/insight", summary="What the models say about the trials", response_model=InsightAnswer | None)
    def insight() -> Response:
        return _json(insight_of(live))

    @app.post("/api/slice", summary="Cost and P(safe) over one or two parameters", response_model=SliceAnswer | None)
    def slice_(body: SliceBody) -> Response:
        found = live.slice(body.axes, dict(body.at), body.size)
        return _json(None if found is None else asdict(found))


def _add_tables(app: FastAPI, live: Live) -> None:
    @app.get("/api/trials.csv", summary="All trials as CSV", response_class=_Csv)
    def as_csv() -> Response:
        return _Csv(table.export(live.bench), headers={"content-disposition": 'attachment; filename="trials.csv"'})

    @app.post(
        "/api/import", summary="Add the new trials of a CSV, or say what would be done", response_model=ImportAnswer
    )
    def import_(body: ImportBody) -> Response:
        if not body.apply:
            return _json(plan_out(table.plan(live.bench, body.csv), applied=False))
        done = table.load(live.bench, body.csv, beyond=body.beyond, who=body.who)
        live.poke()
        return _json(plan_out(done, applied=True))

    @app.get("/api/report.html", summary="The study as one HTML file; takes a while", response_class=HTMLResponse)
    def report_() -> Response:
        headers = {"content-disposition": f'attachment; filename="{report.file_name(live.bench.ledger.name)}"'}
        return HTMLResponse(live.in_background(report.of_bench), headers=headers)


def _add_trials(app: FastAPI, live: Live) -> None:
    bench = live.bench

    @app.get("/api/trials", summary="All trials", response_model=list[EntryAnswer])
    def trials() -> Response:
        return _json([entry_out(e) for e in bench.entries()])

    @app.get("/api/trials/{number}", summary="One trial", response_model=EntryAnswer)
    def trial(number: TrialNumber) -> Response:
        return _json(entry_out(bench.entry(number)))

    @app.post(
        "/api/ask",
        summary="The next trial; repeating it with the same request id returns the same trial",
        response_model=TrialAnswer,
    )
    async def ask(body: AskBody) -> Response:
        return _written(live, await asyncio.wrap_future(live.asks.ask(Asked(body.request, body.lease, body.context))))

    @app.post("/api/wish", summary="Queue a setting, to be handed out next", status_code=204)
    def wish(body: WishBody) -> None:
        bench.wish(body.params, beyond=body.beyond)
        live.poke()

    @app.post("/api/trials", summary="Add a trial that was not asked for", response_model=TrialAnswer)
    def add(body: AddBody) -> Response:
        told, params = body.told(), {**body.params, **(body.context or {})}
        return _written(live, bench.add(params, told, request=body.request, beyond=body.beyond, who=body.who))

    @app.post(
        "/api/trials/{number}/tell",
        summary="Tell the outcome of a trial; repeating it has no effect",
        response_model=TrialAnswer,
    )
    def tell(number: TrialNumber, body: TellBody) -> Response:
        return _written(live, bench.tell(number, body.told(), request=body.request, who=body.who))

    @app.post(
        "/api/trials/{number}/void",
        summary="Tell that a fault ended a trial, unrelated to its parameters",
        response_model=TrialAnswer,
    )
    def void(number: TrialNumber, body: VoidBody) -> Response:
        return _written(live, bench.void(number, body.reason, request=body.request, who=body.who))

    @app.post("/api/trials/{number}/lease", summary="Extend the lease of a trial", response_model=LeaseAnswer)
    def lease(number: TrialNumber, body: LeaseBody) -> Response:
        return _json({"until": bench.renew(number, body.seconds)})


def _add_corrections(app: FastAPI, live: Live) -> None:
    @app.post(
        "/api/trials/{number}/fix", summary="Correct a trial that was told, and its setting", response_model=TrialAnswer
    )
    def fix(number: TrialNumber, body: FixBody) -> Response:
        told = live.bench.fix(number, body.told(), params=body.params, beyond=body.beyond, who=body.who)
        return _written(live, told)

    @app.post("/api/trials/{number}/undo", summary="Undo the last report on a trial", response_model=TrialAnswer)
    def undo(number: TrialNumber, body: UndoBody | None = None) -> Response:
        return _written(live, live.bench.undo(number, who="" if body is None else body.who))


def _add_comparisons(app: FastAPI, live: Live) -> None:
    @app.get(
        "/api/comparisons",
        summary="All comparisons, in the order in which they were told",
        response_model=list[ComparisonAnswer],
    )
    def comparisons() -> Response:
        return _json([comparison_out(said) for said in live.bench.comparisons()])

    @app.post(
        "/api/prefer",
        summary="Say which of two successes was better; repeating it with the same request id has no effect",
        response_model=ComparisonAnswer,
    )
    def prefer(body: PreferBody) -> Response:
        said = live.bench.prefer(**body.model_dump())
        live.poke()
        return _json(comparison_out(said))

    @app.post("/api/unprefer", summary="Take back a comparison", response_model=ComparisonAnswer)
    def unprefer(body: UnpreferBody | None = None) -> Response:
        body = body or UnpreferBody(id=None)
        said = live.bench.unprefer(body.id, who=body.who)
        live.poke()
        return _json(comparison_out(said))

    @app.get(
        "/api/ranking",
        summary="The compared trials, the best first, and who beat whom",
        response_model=list[RankedAnswer],
    )
    def ranking() -> Response:
        return _json([] if live.picture is None else [asdict(r) for r in live.picture.ranking])

    @app.get("/api/films/{name}", summary="The photo or film of a trial", response_class=FileResponse)
    def film(name: str) -> Response:
        found = live.films.path(name)
        if found is None:
            raise Missing(f"film must be there; got {name!r}. Put a file named after the trial into the folder.")
        return FileResponse(found)


def _written(live: Live, trial: Trial) -> Response:
    live.poke()
    return _json(asdict(trial))


def _add_session(app: FastAPI, token: str | None, slowly: gate.Brake) -> None:
    @app.post(gate.SESSION, summary="Store the token in a cookie, for browsers", status_code=204)
    async def session(body: SessionBody, response: Response) -> None:
        if token is None:
            return
        if not gate.same(body.token, token):
            await slowly.wait()
            raise HTTPException(401, "token must be that of this server. Look at where it was started.")
        response.set_cookie(gate.COOKIE, gate.cookie_of(token), httponly=True, samesite="strict", max_age=30 * 86400)


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", media_type="text/html")

    @app.get("/docs", include_in_schema=False)
    def documentation() -> FileResponse:
        return FileResponse(PAGE / "docs.html", media_type="text/html")

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

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)

    app.add_exception_handler(HTTPException, http)


def _sentence(error: RequestValidationError) -> str:
    """The first error of a request, without repeating what was sent."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", ONE, SEVERAL))[:60] or "body"
    if first["type"] == "json_invalid":
        return "body must be JSON; it cannot be read. Mend it."
    rule = {"missing": "must be given", "extra_forbidden": "must be left out: there is no such field"}
    words = rule.get(first["type"]) or str(first["msg"]).replace("Input should", "must", 1)
    return f"{where} {words}."


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
