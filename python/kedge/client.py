"""A client as Flower has it, as a trainer of Kedge: kedge.run(client) answers the requests of kedge-client."""
import argparse
import hashlib
import json
import math
import os
import sys
import time
import traceback
from pathlib import Path

from ._library import Error, Session, library, load_tensors, save_tensors

KNOWN_OPS = ("train", "evaluate", "measure", "hello")
NUMBERS = ("lr", "l2", "proximal", "momentum", "clip", "personal_pull")  # decimals in quotes
MAY_BE_MISUNDERSTOOD = ("l2", "proximal", "momentum", "clip", "drift")  # what another fit() would do without
TEXT_MAX = 300


class Refused(Exception):
    """A request or a result that is answered by an error: its code and the reason."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class NumPyClient:
    """What a site trains, with parameters as a list of NumPy arrays, as in Flower. Override the first three methods; the
    others where the job's strategy needs them.

    `names` are those of the tensors in that order, as the job has them; None: the job's own order is taken as it is.
    `understands` is what of a job fit() really does beside plain SGD, where config has it:
      "proximal"  config["proximal"] times the distance to `parameters` is added to each gradient (FedProx)
      "drift"     config["drift"], arrays like `parameters`, is taken from each gradient (SCAFFOLD)
      "l2"        2 · config["l2"] times the weights is added to each kernel's gradient
      "momentum"  v = config["momentum"] · v + gradient, then a step along v, which begins at 0 with each call
      "clip"      the loss's gradient is shortened to config["clip"] before the others are added
    A job that needs what is not there is answered by an error, for a client that ignored it would train another job than
    was agreed.

    A job of strategy "adapters" (LoRA) freezes tensors: config["trainable"] names those that fit() may change, in the order of
    `names`, and in all other jobs it names all. fit() returns the frozen ones as it got them, or leaves them out: then the list
    has the trainable ones alone. If a frozen one has moved, by a single bit, the answer is an error with its name.
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

    def measure(self, parameters, config):
        """The mean loss on the site's own training data: for strategies in which a site chooses among models (ifca) or weighs
        by its loss (qffl)."""
        raise NotImplementedError

    def fit_personal(self, parameters, towards, config):
        """The site's own model (ditto), trained as in fit() with config["personal_pull"] times the distance to `towards`,
        the shared one, added to each gradient; its parameters. It never leaves the site."""
        raise NotImplementedError


def numpy():
    import numpy as found  # only who uses NumPyClient needs it
    return found


def as_arrays(tensors):
    np = numpy()
    return [np.frombuffer(t.values, dtype=np.float32).reshape(t.shape).copy() for t in tensors.values()]  # the client's own


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
    for key in NUMBERS:
        if key in request:
            config[key] = float(request[key])
    if "seed" in request:
        config["seed"] = int(request["seed"])
    if "drift" in request:
        config["drift"] = as_arrays(load_tensors(request["drift"]))
    return config


def has(client, method):
    """True: the client has a method of its own by that name."""
    return getattr(type(client), method, None) is not getattr(NumPyClient, method)


def is_wanted(request, key):
    return key in request and (key == "drift" or float(request[key]) > 0)


def check_request(client, request):
    op, name = request.get("op"), type(client).__name__
    if op not in KNOWN_OPS:
        raise Refused("request", f"\"op\": {op!r} is not for this trainer; expected one of {', '.join(KNOWN_OPS)}")
    for key in MAY_BE_MISUNDERSTOOD:
        if op == "train" and is_wanted(request, key) and key not in client.understands:
            raise Refused("request", f"the job needs \"{key}\", which {name} does not say that it understands")
    if (op == "measure" or request.get("base_loss")) and not has(client, "measure"):
        raise Refused("request", f"the job's strategy asks for the loss on the training data: {name} has no measure()")
    if op == "train" and request.get("personal") and not has(client, "fit_personal"):
        raise Refused("request", f"the job's strategy gives each site a model of its own: {name} has no fit_personal()")


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


def trainable_of(request, tensors):
    """The names of the tensors that may change: the request's words are names, or what stands before the first dot of several."""
    words = request.get("trainable")
    if words is None:
        return list(tensors)
    if not isinstance(words, list) or not words:
        raise Refused("request", f"\"trainable\" is {words!r}, expected a list of tensors")
    for word in words:
        if not any(word in (name, name.partition(".")[0]) for name in tensors):
            raise Refused("request", f"\"trainable\": the model has no tensor {word!r}; it has {', '.join(tensors)}")
    return [name for name in tensors if name in words or name.partition(".")[0] in words]


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


def measure(client, tensors, config):
    loss = real(client.measure(as_arrays(tensors), config), "the loss on the training data")
    if float(loss) < 0:
        raise Refused("internal", f"measure() says {loss}, expected a loss that is not below 0")
    return {"base_loss": loss}


def checked(tensors, parameters, where):
    """What a client has trained as {name: array}, of the shapes of `tensors` and finite."""
    trained = as_tensors(list(tensors), parameters, {name: tensor.shape for name, tensor in tensors.items()})
    for name, array in trained.items():
        if not numpy().isfinite(array).all():
            raise Refused("diverged", f"\"{name}\" has NaN or infinity after {where}")
    return trained


def personal(client, request, tensors, config):
    """The site's own model: read, trained behind the shared one and written, and measured as it is then."""
    path, own = request["personal"], tensors
    if os.path.exists(path):
        own = load_tensors(path)
        if {name: t.shape for name, t in own.items()} != {name: t.shape for name, t in tensors.items()}:
            raise Refused("model", f"{path} has other tensors than the job")
    arrays = as_arrays(own)
    if request["op"] == "train":
        alone = {key: value for key, value in config.items() if key not in ("proximal", "drift")}
        alone.setdefault("personal_pull", 0.0)
        trained = checked(tensors, client.fit_personal(arrays, as_arrays(tensors), alone), "fit_personal()")
        save_tensors(path, trained)
        arrays = list(trained.values())
    if request["op"] == "train" and not request.get("evaluate_base"):
        return {}
    found = evaluate(client, arrays, config)
    return {"personal_correct": found["test_correct"], "personal_loss": found["test_loss"]}


def without_frozen(tensors, parameters, trainable):
    """What fit() has trained, {name: array} of the trainable tensors. A frozen one that moved would be lost on the way, and the
    others were trained for it: that is an error. The site compares, too; here the client's author is told sooner."""
    if len(parameters) == len(trainable) < len(tensors):
        return checked({name: tensors[name] for name in trainable}, parameters, "fit()")
    trained = checked(tensors, parameters, "fit()")
    for name in [name for name in tensors if name not in trainable]:
        if trained[name].tobytes() != tensors[name].values.tobytes():
            raise Refused("model", f"fit() changed \"{name}\", which is frozen in this job; config[\"trainable\"] names those that it "
                                   f"may change: {', '.join(trainable[:8])}")
    return {name: trained[name] for name in trainable}


def train(client, request, tensors, config):
    trainable = trainable_of(request, tensors)
    parameters, samples, metrics = client.fit(as_arrays(tensors), {**config, "trainable": list(trainable)})
    trained = without_frozen(tensors, parameters, trainable)
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
    begin, reply = time.monotonic(), {}
    check_request(client, request)
    engine = f"kedge-python {library().kedge_lib_version().decode()} {type(client).__name__}"
    if request["op"] == "hello":
        return {"engine": engine}
    tensors, config = base_of(request, client), config_of(request)
    if request["op"] == "evaluate" or request.get("evaluate_base"):
        reply.update(evaluate(client, as_arrays(tensors), config))
    if request["op"] == "measure" or request.get("base_loss"):
        reply.update(measure(client, tensors, config))
    if request["op"] == "train":
        reply.update(train(client, request, tensors, config))
    if request.get("personal") and request["op"] != "measure":
        reply.update(personal(client, request, tensors, config))
    reply["seconds"] = f"{time.monotonic() - begin:.6f}"
    reply["engine"] = engine
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
