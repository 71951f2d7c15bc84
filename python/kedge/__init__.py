"""Trainers for Kedge in Python, over libkedge-client: no compiler, and NumPy only for NumPyClient. See docs/python.md."""
from ._library import Error, Session, Tensor, load_tensors, save_tensors
from .client import NumPyClient, answer_line, run

__all__ = ["Error", "NumPyClient", "Session", "Tensor", "answer_line", "load_tensors", "run", "save_tensors"]
