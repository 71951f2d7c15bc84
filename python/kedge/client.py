"""A client as Flower has it, as a trainer of Kedge: kedge.run(client) answers the requests of kedge-client."""
import argparse
import hashlib
import json
import math
import sys
import time
import traceback
from pathlib import Path

from ._library import Error, Session, library, load_tensors, save_tensors

KNOWN_OPS = ("train", "evaluate")
TEXT_MAX = 300


class Refused(Exception):
    """A request or a result that is answered by an error: its code and the reason."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class NumPyClient:
    """What a site trains, with parameters as a list of NumPy arrays, as in Flower. Override the three methods.

    `names` are those of the tensors in that order, as the job has them; None: the job's own order is taken as it is.
    `understands` is what of a job's strategy fit() really does: {"proximal"} where it adds config["proximal"] times the
    distance to the parameters to its gradient. A job that needs what is not there is answered by an error, for a client
    that ignored it would train another job than was agreed.
    """

    names = None
    understands = frozenset()

    def get_parameters(self, config):
        """The first weights: asked for by --describe only; a job's rounds bring their own."""
        raise NotImplementedError

    def fit(self, parameters, config):
        """(parameters, samples, metrics). metrics may have "steps", "train_loss" and "labels" (samples of each class)."""
        raise NotImplementedError

    def evaluate(self, parameters, config):
        """(loss, samples, metrics) on the site's own test data, with metrics["accuracy"] or metrics["correct"]."""
        raise NotImplementedError


def numpy():
    import numpy as found  # only who uses NumPyClient needs it
    return found


def as_arrays(tensors):
    np = numpy()
    return [np.frombuffer(t.values, dtype=np.float32).reshape(t.shape) for t in tensors.values()]


def as_tensors(names, parameters, shapes=None):
    np = numpy()
    if len(parameters) != len(names):
        raise Refused("model", f"{len(parameters)} arrays, expected {len(names)}: {', '.join(names[:8])}")
    found = {}
    for name, array in zip(names, parameters):
        array = np.asarray(array, dtype=np.float32)
        if shapes is not None and array.shape != shapes[name]:
            raise Refused("model", f"\"{name}\" has shape {list(array.shape)}, expected {list(shapes[name])}")
        found[name] = np.ascontiguousarray(array).reshape(array.shape)
    return found


def config_of(request):
    """What fit and evaluate are told: the job's settings, the data that the owner has bound, and the numbers of the task."""
    config = dict(request.get("model", {}).get("settings", {}))
    config["data"] = request.get("data", {})
    for key in ("epochs", "batch", "steps", "threads"):
        if key in request:
            config[key] = int(request[key])
    for key in ("lr", "l2", "proximal"):
        if key in request:
            config[key] = float(request[key])
    if "seed" in request:
        config["seed"] = int(request["seed"])
    return config


def check_request(client, request):
    if request.get("op") not in KNOWN_OPS:
        raise Refused("request", f"\"op\": {request.get('op')!r} is not for this trainer; expected \"train\" or \"evaluate\"")
    for key in ("proximal", "drift", "personal", "base_loss"):
        if request.get(key) and key not in client.understands:
            raise Refused("request", f"the job's strategy needs \"{key}\", which {type(client).__name__} does not say that it "
                                     f"understands")


def count(value, what):
    if isinstance(value, bool) or int(value) != value or value < 0:
        raise Refused("internal", f"{what} is {value!r}, expected a whole number")
    return int(value)


def real(value, what):
    value = float(value)
    if not math.isfinite(value):
        raise Refused("diverged", f"{what} is {value}, expected a number")
    return repr(value)


def base_of(request, client):
    tensors = load_tensors(request["base"])
    if client.names is not None and list(client.names) != list(tensors):
        raise Refused("model", f"the job's tensors are {', '.join(tensors)}; this client has {', '.join(client.names)}")
    return tensors


def evaluate(client, parameters, config):
    loss, samples, metrics = client.evaluate(parameters, config)
    samples = count(samples, "the number of test samples")
    if "correct" in metrics:
        correct = count(metrics["correct"], "\"correct\"")
    elif "accuracy" in metrics:
        correct = round(float(metrics["accuracy"]) * samples)
    else:
        raise Refused("internal", "evaluate() returned neither \"accuracy\" nor \"correct\" among its metrics")
    if correct > samples:
        raise Refused("internal", f"evaluate() says {correct} right of {samples}")
    return {"test_samples": samples, "test_correct": correct, "test_loss": real(loss, "the loss")}


def train(client, request, tensors, config):
    np = numpy()
    parameters, samples, metrics = client.fit(as_arrays(tensors), config)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    trained = as_tensors(list(tensors), parameters, shapes)
    for name, array in trained.items():
        if not np.isfinite(array).all():
            raise Refused("diverged", f"\"{name}\" has NaN or infinity after fit()")
    samples = count(samples, "the number of samples")
    batch = max(config.get("batch", 1), 1)
    steps = metrics.get("steps", config.get("steps") or config.get("epochs", 1) * math.ceil(samples / batch))
    reply = {"samples": samples, "steps": count(steps, "\"steps\""), "batch": batch}
    if "train_loss" in metrics:
        reply["train_loss"] = real(metrics["train_loss"], "\"train_loss\"")
    if "labels" in metrics:
        reply["labels"] = [count(n, "a label's samples") for n in metrics["labels"]]
    save_tensors(request["out"], trained)
    return reply


def answer(client, request):
    """The reply to a request, without its id and status."""
    begin = time.monotonic()
    check_request(client, request)
    tensors, config, reply = base_of(request, client), config_of(request), {}
    if request["op"] == "evaluate" or request.get("evaluate_base"):
        reply.update(evaluate(client, as_arrays(tensors), config))
    if request["op"] == "train":
        reply.update(train(client, request, tensors, config))
    reply["seconds"] = f"{time.monotonic() - begin:.6f}"
    reply["engine"] = f"kedge-python {library().kedge_lib_version().decode()} {type(client).__name__}"
    return reply


def answer_line(client, line):
    request = {}
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise Refused("request", "expected a JSON object")
        reply = {"status": "ok", **answer(client, request)}
    except Refused as e:
        reply = {"status": "error", "code": e.code, "message": str(e)[:TEXT_MAX]}
    except Error as e:
        reply = {"status": "error", "code": "output", "message": str(e)[:TEXT_MAX]}
    except MemoryError:
        reply = {"status": "error", "code": "memory", "message": "out of memory"}
    except Exception as e:  # whatever the client does, the site gets an answer and the owner the trace
        traceback.print_exc()
        reply = {"status": "error", "code": "internal", "message": f"{type(e).__name__}: {e}"[:TEXT_MAX]}
    if isinstance(request, dict) and isinstance(request.get("id"), str):
        reply["id"] = request["id"]
    return json.dumps(reply, separators=(",", ":")).encode()


def serve(client):
    session = Session()
    for line in session:
        session.reply(answer_line(client, line))
    session.close()


def describe(client, trainer, path):
    """Writes the first weights to path; what a job spec says of the client's model."""
    parameters = client.get_parameters({})
    names = list(client.names) if client.names is not None else [f"tensor.{i}" for i in range(len(parameters))]
    tensors = as_tensors(names, parameters)
    save_tensors(path, tensors)
    return {"model": "external",
            "initial_model": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
            "external": {"trainer": trainer,
                         "tensors": [{"name": name, "shape": list(array.shape)} for name, array in tensors.items()]}}


def run(client, trainer=None, argv=None):
    """The whole program: serves the site's requests until they end, or, with --describe FILE, writes the client's first
    weights to FILE and prints what a job spec says of the model. client: a NumPyClient, or a function that makes one."""
    name = trainer or Path(sys.argv[0] or "trainer").stem.lower().replace(" ", "-")
    parser = argparse.ArgumentParser(description="A trainer for kedge-client, which starts it: see docs/python.md of Kedge.")
    parser.add_argument("--describe", metavar="FILE", help="write the first weights to FILE, print the spec's part")
    wanted, _ = parser.parse_known_args(argv)
    made = client if isinstance(client, NumPyClient) else client()
    if wanted.describe:
        print(json.dumps(describe(made, name, wanted.describe), indent=1))
    else:
        serve(made)
