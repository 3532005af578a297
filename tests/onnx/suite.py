"""The suite of onnx.backend.test: 2,033 cases in worker processes, so that a crash costs one case.

python tests/onnx/suite.py dovetail --device sim:0 -k resize -o results.json
python tests/onnx/suite.py onnxruntime

prints each case that does not pass and why, as wrong (another result), unsupported (NotImplementedError), error
(any other exception), crash or timeout, and writes the results. `reference` and `onnxruntime` run the same cases.
"""

from __future__ import annotations

import argparse
import glob
import json
import multiprocessing
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

KINDS = ("node", "real", "simple", "pytorch-converted", "pytorch-operator")
SECONDS = 120.0  # for one case


class Result(NamedTuple):
    status: str  # pass, wrong, unsupported, error, crash, timeout
    why: str
    ops: tuple[str, ...] = ()


# ---- cases -------------------------------------------------------------------------------------------------------


def cases(pattern: str = "") -> dict[str, Any]:
    """The cases by name, kind/name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {f"{kind}/{case.name}": case for kind in KINDS for case in load_model_tests(kind=kind)}
    return {name: found[name] for name in sorted(found) if any(p in name for p in pattern.split(","))}


def materialised(case: Any) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    """The model of a case, and pairs of inputs and expected outputs."""
    from onnx.backend.test.runner import Runner, _normalize_tensor

    if case.model is not None and case.data_sets is not None:
        return case.model, [tuple([_normalize_tensor(x) for x in part] for part in pair) for pair in case.data_sets]
    if case.url and case.url.startswith("onnx/backend/test/data/light/"):
        path = os.path.join(os.path.dirname(os.path.dirname(onnx.__file__)), case.url)
        model = onnx.load(path)
        constants = {t.name for t in model.graph.initializer}
        given = [Runner.generate_dummy_data(x) for x in model.graph.input if x.name not in constants]
        expected = [_value(f"{path[:-5]}_output_{i}.pb", o.type) for i, o in enumerate(model.graph.output)]
        return model, [(given, expected)]
    model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
    sets = []
    for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_*"))):
        n_in, n_out = (len(glob.glob(f"{folder}/{which}_*.pb")) for which in ("input", "output"))
        given = [_value(f"{folder}/input_{i}.pb", model.graph.input[i].type) for i in range(n_in)]
        sets.append((given, [_value(f"{folder}/output_{i}.pb", model.graph.output[i].type) for i in range(n_out)]))
    return model, sets


def _value(path: str, kind: onnx.TypeProto) -> Any:
    with open(path, "rb") as file:
        raw = file.read()
    which = kind.WhichOneof("value")
    if which == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(raw))
    if which == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(raw))
    return numpy_helper.to_array(onnx.TensorProto.FromString(raw))


# ---- who runs a model --------------------------------------------------------------------------------------------


def by_dovetail(device: str, variants: int = 8) -> Callable[..., list[Any]]:
    import dovetail

    dovetail.fallback("error")

    def run(model: onnx.ModelProto, given: list[Any]) -> list[Any]:
        import dovetail.onnx

        dovetail.random.seed(0)  # what is drawn is the same in every run
        loaded = dovetail.onnx.load(model, device, limits=dovetail.onnx.Limits(variants=variants))
        return [_back(v) for v in loaded(*given)]

    return run


def _back(value: Any) -> Any:
    if isinstance(value, list):
        return [_back(v) for v in value]
    return value if value is None or isinstance(value, np.ndarray) else np.asarray(value)


def _names(model: onnx.ModelProto) -> list[str]:
    constants = {t.name for t in model.graph.initializer}
    return [port.name for port in model.graph.input if port.name not in constants]


def by_reference(device: str, variants: int = 0) -> Callable[..., list[Any]]:
    from onnx.reference import ReferenceEvaluator

    return lambda model, given: ReferenceEvaluator(model).run(None, dict(zip(_names(model), given)))


def by_onnxruntime(device: str, variants: int = 0) -> Callable[..., list[Any]]:
    """With dtypes that NumPy lacks handed over as the bytes that they are."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4

    def run(model: onnx.ModelProto, given: list[Any]) -> list[Any]:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        kinds = {port.name: port.type.tensor_type.elem_type for port in model.graph.input}

        def fed(name: str, x: Any) -> Any:
            if x is None or isinstance(x, list):
                return x
            x = np.asarray(x)
            if x.dtype.kind != "V" and x.dtype.name in np.sctypeDict:
                return x
            raw = x.view(np.uint8 if x.dtype.itemsize == 1 else np.uint16)
            return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, kinds[name])

        made = session.run(None, {n: fed(n, v) for n, v in zip(_names(model), given)})
        return [_viewed(v, port) for v, port in zip(made, model.graph.output)]

    return run


def _viewed(value: Any, port: onnx.ValueInfoProto) -> Any:
    kind = port.type.tensor_type.elem_type
    if (
        not isinstance(value, np.ndarray)
        or not port.type.HasField("tensor_type")
        or kind == onnx.TensorProto.STRING
    ):
        return value
    wanted = onnx.helper.tensor_dtype_to_np_dtype(kind)
    return value.view(wanted) if wanted != value.dtype and wanted.itemsize == value.dtype.itemsize else value


RUNNERS = {"dovetail": by_dovetail, "reference": by_reference, "onnxruntime": by_onnxruntime}


# ---- worker processes --------------------------------------------------------------------------------------------


def _one(run: Callable[..., list[Any]], case: Any) -> Result:
    from onnx.backend.test.runner import Runner

    ops: tuple[str, ...] = ()
    try:
        model, sets = materialised(case)
        ops = tuple(sorted({f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in model.graph.node}))
        for given, expected in sets:
            made = [np.asarray(v) if isinstance(v, np.generic) else v for v in run(model, given)]
            Runner.assert_similar_outputs(expected, made, rtol=case.rtol, atol=case.atol)
    except AssertionError as error:
        return Result("wrong", " ".join(str(error).split())[:300], ops)
    except NotImplementedError as error:
        return Result("unsupported", str(error)[:300], ops)
    except Exception as error:
        return Result("error", f"{type(error).__name__}: {error}"[:300], ops)
    return Result("pass", "", ops)


def _worker(who: str, device: str, variants: int, found: dict[str, Any], names: list[str], pipe: Any) -> None:
    warnings.simplefilter("ignore")
    run = RUNNERS[who](device, variants)
    for name in names:
        pipe.send((name, None))
        pipe.send((name, _one(run, found[name])))
    pipe.send((None, None))


def results(who: str, device: str = "cpu:0", pattern: str = "", variants: int = 8) -> Iterator[tuple[str, Result]]:
    """(name, result) of each case."""
    found = cases(pattern)
    left = list(found)
    context = multiprocessing.get_context("fork")  # the cases, which take seconds to make, are there already
    while left:
        here, there = context.Pipe()
        process = context.Process(target=_worker, args=(who, device, variants, found, left, there))
        process.start()
        there.close()
        current = None
        try:
            while True:
                if not here.poll(SECONDS):
                    process.kill()
                    yield left.pop(0), Result("timeout", f"longer than {SECONDS:g} s")
                    break
                current, result = here.recv()
                if current is None:
                    break
                if result is not None:
                    left.pop(0)
                    yield current, result
        except EOFError:
            process.join()
            yield left.pop(0), Result("crash", f"exit code {process.exitcode}")
        finally:
            here.close()
            process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("who", choices=RUNNERS)
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("--variants", type=int, default=8, help="0: node by node, without programs")
    parser.add_argument("-k", default="", help="parts of names, separated by commas")
    parser.add_argument("-o", help="writes {name: [status, why, ops]}")
    args = parser.parse_args()
    made = {}
    for name, result in results(args.who, args.device, args.k, args.variants):
        made[name] = result
        if result.status != "pass":
            print(result.status, name, result.why[:200], flush=True)
    counts = Counter(result.status for result in made.values())
    print(f"{counts['pass']} of {len(made)}:", dict(counts))
    if args.o:
        with open(args.o, "w") as file:
            json.dump(made, file, indent=0)


if __name__ == "__main__":
    main()
