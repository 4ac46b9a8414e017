"""`crashbo report` and `crashbo serve`: show a study to others. May import every other layer."""

import argparse
from pathlib import Path
from typing import Any

from crashbo.app.commands.common import (
    Answer,
    Refusal,
    ended_by_sigterm,
    kept_option,
    patience,
    study_options,
    subject_in,
)
from crashbo.extras import needs


def add_to(commands: Any) -> None:
    """Add the commands."""
    report = commands.add_parser("report", help="write a study as one HTML file, to mail around")
    kept_option(report)
    report.add_argument("--output", type=Path, metavar="FILE.html", help="(default: STUDY.html)")
    report.add_argument("--png", type=Path, metavar="DIR", help="write its figures there, too")
    report.set_defaults(run=_report)
    serve = commands.add_parser("serve", help="start the page and the HTTP service")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=int, default=8765, help="(default: %(default)s)")
    serve.add_argument("--token", help="required on any address but this machine's own (default: $CRASHBO_TOKEN)")
    serve.add_argument(
        "--films",
        metavar="DIR|URL",
        help="photos or films of trials: a folder with files named after their numbers, or an address with {number}",
    )
    serve.set_defaults(run=_serve)
    for parser in (report, serve):
        study_options(parser)


def _report(options: argparse.Namespace) -> Answer:
    needs("this command", "app" if options.kept is None else "plot", "matplotlib")
    subject = subject_in(options)
    from crashbo.app import report
    from crashbo.app.gathered import gather

    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in subject.titled.name)
    path = options.output or Path(f"{name}.html")
    try:
        report.check_places(path, options.png)  # before minutes are spent on what cannot be kept
        with patience("writing the report") as share:
            figures = report.write(gather(subject, share), path, options.png)
    except OSError as error:
        rule = "--output and --png must be places that can be written to"
        raise Refusal(f"{rule}; got {error.filename!r} ({error.strerror}). Name others.") from None
    return Answer("\n".join(map(str, [path, *figures])), {"report": path, "figures": figures})


def _serve(options: argparse.Namespace) -> Answer:
    needs("this command", "app", "fastapi", "uvicorn")
    from crashbo.app.bench.store import default_store
    from crashbo.app.server.serve import check_address, run, token_of

    token = token_of(options.token)
    check_address(options.host, token)  # before anything is opened or started
    store = options.store or default_store()
    with ended_by_sigterm(0):
        run(store, options.study, options.host, options.port, token, announce=not options.json, films=options.films)
    return Answer("stopped", {"stopped": True})
