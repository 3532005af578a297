"""Embeds sentences with all-MiniLM-L6-v2 and prints how alike they are: python examples/minilm [--device cpu]"""

from __future__ import annotations

import argparse
import time

import dovetail as dt
from model import MiniLM

SENTENCES = [
    "A man is playing a guitar on the street.",
    "Somebody makes music outdoors with a stringed instrument.",
    "The new chip multiplies matrices twice as fast.",
    "Hardware for linear algebra got a lot quicker.",
    "She baked bread with rye and honey.",
]


def similarity_table(model: MiniLM, sentences: list[str]) -> str:
    """Cosine similarities as text, a row per sentence."""
    embeddings = model(sentences)
    rows = (embeddings @ dt.matrix_transpose(embeddings)).tolist()
    width = max(map(len, sentences))
    lines = [f"{'':{width}}  " + " ".join(f"{i:5d}" for i in range(len(rows)))]
    for sentence, row in zip(sentences, rows, strict=True):
        lines.append(f"{sentence:{width}}  " + " ".join(f"{value:5.2f}" for value in row))
    return "\n".join(lines)


def sentences_per_second(model: MiniLM, sentences: list[str], seconds: float) -> float:
    done, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        model(sentences)
        model.device.synchronize()
        done += len(sentences)
    return done / elapsed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python examples/minilm", description=__doc__)
    parser.add_argument("--device", action="append", help="a device by name, several times if wanted; default: all")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to measure on each device")
    options = parser.parse_args()
    for name in options.device or [d.name for d in dt.devices()]:
        model = MiniLM(name)
        print(f"all-MiniLM-L6-v2 on {model.device.name}: cosine similarity")
        print(similarity_table(model, SENTENCES))
        print(f"{sentences_per_second(model, SENTENCES, options.seconds):.0f} sentences per second\n")


if __name__ == "__main__":
    main()
