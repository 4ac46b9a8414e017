"""Animated GIFs of jumps; the only import of Pillow (a dependency of matplotlib). May import every other layer.

Frames are rendered by MuJoCo if a graphics library works, and drawn as stick figures from the side if not.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crashbo.extras import Absent

try:
    from PIL import Image, ImageDraw, ImageFont
except ModuleNotFoundError as error:
    raise Absent("a film", error.name, "plot") from error

from crashbo.problems.solo8 import camera, robot
from crashbo.problems.solo8.jump import Tape
from crashbo.problems.solo8.plan import FOOT_RADIUS, TICK

Array = NDArray[np.float64]

WIDTH, HEIGHT = 360, 300
_BEGIN, _EVERY = 0.30, 0.030  # s of the jump: start of a film, and time between two frames
_SHOWN = 0.070  # s for which a frame is shown: slow motion
_LINGER = 1.0  # s for which the last one is shown
_COLOURS = 64
_SCALE = 3  # stick figures are drawn larger by this factor, then shrunk for smooth edges
_METRE = 300.0  # pixels per metre of a stick figure
_INK, _NEAR, _FAR, _GROUND, _CRASH = "#1A1A1A", "#404040", "#B0B0B0", "#8C8C8C", "#D55E00"


@dataclass(frozen=True)
class Film:
    """A jump to show."""

    path: Path
    title: str
    tape: Tape
    end: str = ""


def save(films: list[Film]) -> bool:
    """Write films as GIFs; returns whether they were rendered (True) or drawn as stick figures."""
    ticks = [np.arange(round(_BEGIN / TICK), len(film.tape.pose), round(_EVERY / TICK)) for film in films]
    poses = [film.tape.pose[at] for film, at in zip(films, ticks, strict=True)]
    frames = camera.film(np.concatenate(poses), WIDTH, HEIGHT)
    if frames is None:
        pictures = [[_stick_figure(pose) for pose in some] for some in poses]
    else:
        cuts = np.cumsum([len(some) for some in poses])[:-1]
        pictures = [[Image.fromarray(frame) for frame in some] for some in np.split(frames, cuts)]
    for film, at, images in zip(films, ticks, pictures, strict=True):
        _write(film, [_captioned(image, film, int(tick)) for image, tick in zip(images, at, strict=True)])
    return frames is not None


def _stick_figure(pose: Array) -> Image.Image:
    """A pose seen from the right: far legs grey, near legs and trunk dark."""
    image = Image.new("RGB", (_SCALE * WIDTH, _SCALE * HEIGHT), "white")
    pen = ImageDraw.Draw(image)
    ground = _pixel(np.array([0.0, 0.0, 0.0]))[1]
    pen.line([(0, ground), (_SCALE * WIDTH, ground)], fill=_GROUND, width=2 * _SCALE)
    legs = dict(zip(robot.LEGS, robot.skeleton(pose), strict=True))
    for side, colour in (("L", _FAR), ("R", _NEAR)):
        for name, points in legs.items():
            if name.endswith(side):
                pen.line([_pixel(p) for p in points], fill=colour, width=4 * _SCALE, joint="curve")
                x, y = _pixel(points[2])
                r = FOOT_RADIUS * _METRE * _SCALE
                pen.ellipse([x - r, y - r, x + r, y + r], fill=_CRASH if side == "R" else colour)
    pen.line([_pixel(legs["HR"][0]), _pixel(legs["FR"][0])], fill=_INK, width=12 * _SCALE)
    return image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def _pixel(point: Array) -> tuple[float, float]:
    return _SCALE * (WIDTH / 2 + _METRE * float(point[0])), _SCALE * (HEIGHT - 24 - _METRE * float(point[2]))


def _captioned(image: Image.Image, film: Film, tick: int) -> Image.Image:
    """The frame with title, time and height of the jump, and the reason once it has crashed."""
    pen = ImageDraw.Draw(image)
    large, small = ImageFont.load_default(17), ImageFont.load_default(13)
    pen.text((10, 8), film.title, fill=_INK, font=large)
    pen.text((10, 32), f"{tick * TICK:.2f} s   {film.tape.pose[tick, 2]:.2f} m", fill=_NEAR, font=small)
    if film.end and tick >= film.tape.end:
        pen.text((10, 50), film.end, fill=_CRASH, font=small)
    return image


def _palette(image: Image.Image) -> Image.Image:
    """The colours of a frame, plus those that cover few pixels but matter."""
    swatches = image.copy()
    pen = ImageDraw.Draw(swatches)
    for k, colour in enumerate((_INK, _CRASH)):
        pen.rectangle([40 * k, HEIGHT - 40, 40 * k + 39, HEIGHT], fill=colour)
    return swatches.quantize(_COLOURS)


def _write(film: Film, images: list[Image.Image]) -> None:
    palette = _palette(images[len(images) // 2])  # one for all frames, to avoid flicker
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    times = [round(1000 * _SHOWN)] * (len(flat) - 1) + [round(1000 * _LINGER)]
    flat[0].save(film.path, save_all=True, append_images=flat[1:], duration=times, loop=0, optimize=True)
