"""Request bodies. May import every other layer."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from crashbo.app.bench.definition import LARGEST
from crashbo.optimizer.told import Said, Told

Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e9)]
Name = Annotated[str, Field(strict=True, max_length=80)]
Text = Annotated[str, Field(strict=True, max_length=500)]
RequestId = Annotated[str, Field(strict=True, min_length=1, max_length=100)]
Yes = Annotated[bool, Field(strict=True)]
TrialNumber = Annotated[int, Field(strict=True, ge=0, le=10**9)]
Value = Number | Name | Yes
SentParams = Annotated[dict[Name, Value], Field(max_length=200)]
Names = Annotated[list[Name], Field(max_length=100)]
# Told apart by what was sent, so that what is wrong is said of that; the service leaves the tags out of its words.
ONE, SEVERAL = "one cost", "several goals"
SentCost = Annotated[
    Annotated[Number, Tag(ONE)] | Annotated[dict[Name, Number], Field(max_length=100), Tag(SEVERAL)],
    Discriminator(lambda sent: SEVERAL if isinstance(sent, dict) else ONE),
]


def _example(body: dict[str, Any]) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [body]})


class Body(BaseModel):
    """A body without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class AskBody(Body):
    """A request for the next trial."""

    model_config = _example({"request": "a1", "lease": 600})

    request: RequestId | None = Field(None, description="Chosen by the client; repeating it returns the same trial.")
    lease: Seconds | None = Field(None, description="Seconds after which the trial is given up (default: the study's).")
    context: SentParams | None = Field(None, description="What is met now, where the study has contexts.")


class TellBody(Body):
    """The outcome of a trial: exactly one of cost, success, crash, stopped and void."""

    model_config = _example({"cost": 0.71, "measured": {"current": 96.3}, "request": "t1", "who": "Ann"})

    cost: SentCost | None = Field(
        None, description="It succeeded. Of several goals, each by its name; one that was not measured is left out."
    )
    success: Yes | None = Field(None, description="It succeeded, without a cost.")
    measured: Annotated[dict[Name, Number], Field(max_length=100)] | None = Field(None, description="By constraint.")
    crash: Yes | Text | None = Field(None, description="It crashed because of its parameters: true, or why.")
    blame: Name | Names | None = Field(None, description="Constraints violated.")
    censored: Yes | Name | Names | None = Field(
        None, description="Readings in `measured` that were cut off: the true value lies there or beyond. True: all."
    )
    reached: Annotated[dict[Name, Number], Field(max_length=100)] | None = Field(
        None, description="Of a crash, the last readings before it, by constraint."
    )
    rises: Annotated[dict[Name, Number], Field(max_length=100)] | None = Field(
        None, description="Of what was reached, the largest rise from one reading to the next, towards the crash."
    )
    stopped: Annotated[dict[Name, Number], Field(max_length=100)] | None = Field(
        None, description="It was stopped before it could crash, at these readings, by constraint."
    )
    void: Yes | Text | None = Field(None, description="Something else went wrong: true, or what.")
    note: Text | None = Field(None, description="Words to keep with it; of a crash or a void, the same as its reason.")
    ran: SentParams | None = Field(None, description="Values that were really run, where they differed, by parameter.")
    context: SentParams | None = Field(None, description="The context as it was met, where it differed.")
    who: Name = Field("", description="Name of whoever tells it.")
    request: RequestId | None = Field(None, description="Chosen by the client; repeating it has no effect.")

    def told(self) -> Told:
        """The outcome as a record."""
        return Told.of(**self.model_dump(include=set(Said.__annotations__)))


class AddBody(TellBody):
    """A trial that was not asked for, with its outcome."""

    model_config = _example({"params": {"knee": 0.2, "hip": 0.5}, "cost": 0.5, "measured": {"current": 88.0}})

    params: SentParams
    beyond: Yes = Field(False, description="That it really ran beyond the bounds.")


class FixBody(TellBody):
    """The right outcome of a trial and, if it is given, the setting that really ran."""

    model_config = _example({"cost": 0.17, "params": {"knee": 0.2, "hip": 0.6}, "who": "Ann"})

    params: SentParams | None = None
    beyond: Yes = Field(False, description="That it really ran beyond the bounds.")


class VoidBody(Body):
    """Why a trial is void."""

    model_config = _example({"reason": "unplugged"})

    reason: Text = ""
    request: RequestId | None = None
    who: Name = ""


class PreferBody(Body):
    """Which of two successes was better."""

    model_config = _example({"better": 7, "worse": 5, "request": "p1", "who": "Ann"})

    better: TrialNumber = Field(description="Number of a trial.")
    worse: TrialNumber = Field(description="Number of another.")
    tie: Yes = Field(False, description="Both were about the same.")
    replaces: Yes = Field(False, description="In place of what was said of these two before.")
    who: Name = Field("", description="Name of whoever says it.")
    request: RequestId | None = Field(None, description="Chosen by the client; repeating it has no effect.")


class UnpreferBody(Body):
    """Which comparison is taken back."""

    model_config = _example({"id": "p1:0", "who": "Ann"})

    id: Annotated[str, Field(strict=True, max_length=120)] | None = Field(None, description="By default the last one.")
    who: Name = ""


class UndoBody(Body):
    """Who takes back the last report."""

    model_config = _example({"who": "Ann"})

    who: Name = ""


class HaltBody(Body):
    """Why no more trials are to be handed out."""

    model_config = _example({"why": "smoke", "who": "Ann"})

    why: Text = ""
    who: Name = ""


class WishBody(Body):
    """A setting to be handed out next."""

    model_config = _example({"params": {"knee": 0.2, "hip": 0.5}})

    params: SentParams
    beyond: Yes = Field(False, description="That it is meant to lie beyond the bounds.")


class ImportBody(Body):
    """A table of trials."""

    model_config = _example({"csv": "id,knee,hip,cost\nS-17,0.2,0.5,0.44\n", "apply": False})

    csv: Annotated[str, Field(strict=True, max_length=3_000_000)]
    apply: Yes = Field(False, description="Add the new ones; without it, only what would be done is said.")
    beyond: Yes = Field(False, description="That rows beyond the bounds really ran there.")
    who: Name = ""


class LeaseBody(Body):
    """The new length of a lease."""

    model_config = _example({"seconds": 600})

    seconds: Seconds


class SliceBody(Body):
    """A slice through the space."""

    model_config = _example({"axes": ["knee", "hip"], "at": {"knee": 0.2, "hip": 0.5}})

    axes: Annotated[list[Name], Field(min_length=1, max_length=2)]
    at: SentParams
    size: Annotated[int, Field(strict=True, ge=2, le=101)] = 41


class SessionBody(Body):
    """A token, to be stored in a cookie."""

    token: Text
