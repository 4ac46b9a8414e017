"""Request bodies. May import every other layer."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from crashbo.app.bench.definition import LARGEST
from crashbo.optimizer.told import Said, Told

Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e9)]
Name = Annotated[str, Field(strict=True, max_length=80)]
Text = Annotated[str, Field(strict=True, max_length=500)]
RequestId = Annotated[str, Field(strict=True, min_length=1, max_length=100)]
Yes = Annotated[bool, Field(strict=True)]
Value = Number | Name | Yes
SentParams = Annotated[dict[Name, Value], Field(max_length=200)]
Names = Annotated[list[Name], Field(max_length=100)]


class Body(BaseModel):
    """A body without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class AskBody(Body):
    """A request for the next trial."""

    request: RequestId | None = Field(None, description="Chosen by the client; repeating it returns the same trial.")
    lease: Seconds | None = Field(None, description="Seconds after which the trial is given up (default: the study's).")


class TellBody(Body):
    """The outcome of a trial: exactly one of cost, crash and void."""

    cost: Number | None = Field(None, description="It succeeded.")
    measured: Annotated[dict[Name, Number], Field(max_length=100)] | None = Field(None, description="By constraint.")
    crash: Yes | Text | None = Field(None, description="It crashed because of its parameters: true, or why.")
    blame: Name | Names | None = Field(None, description="Constraints violated.")
    censored: Yes | Name | Names | None = Field(
        None, description="Readings in `measured` that were cut off: the true value lies there or beyond. True: all."
    )
    void: Yes | Text | None = Field(None, description="Something else went wrong: true, or what.")
    request: RequestId | None = Field(None, description="Chosen by the client; repeating it has no effect.")

    def told(self) -> Told:
        """The outcome as a record."""
        return Told.of(**self.model_dump(include=set(Said.__annotations__)))


class AddBody(TellBody):
    """A trial that was not asked for, with its outcome."""

    params: SentParams


class VoidBody(Body):
    """Why a trial is void."""

    reason: Text = ""
    request: RequestId | None = None


class LeaseBody(Body):
    """The new length of a lease."""

    seconds: Seconds


class SliceBody(Body):
    """A slice through the space."""

    axes: Annotated[list[Name], Field(min_length=1, max_length=2)]
    at: SentParams
    size: Annotated[int, Field(strict=True, ge=2, le=101)] = 41


class SessionBody(Body):
    """A token, to be stored in a cookie."""

    token: Text
