#!/usr/bin/env python3
"""A convolutional network in PyTorch as a trainer of Kedge; written as clients for Flower are."""
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for digits.py

import kedge
from digits import load


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc1 = nn.Linear(8 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv(x.view(-1, 1, 8, 8))), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class DigitsClient(kedge.NumPyClient):
    understands = {"momentum"}
    data = None

    def __init__(self):
        torch.manual_seed(1)
        self.net = Net()
        self.names = list(self.net.state_dict())

    def get_parameters(self, config):
        return [value.cpu().numpy() for value in self.net.state_dict().values()]

    def set_parameters(self, parameters):
        state = OrderedDict((name, torch.tensor(np.array(value))) for name, value in zip(self.names, parameters))
        self.net.load_state_dict(state, strict=True)

    def set_data(self, config):
        if self.data is None or self.data[0] != config["data"]:
            self.data = (config["data"], [torch.from_numpy(part) for part in load(config["data"])])
        torch.set_num_threads(max(1, config.get("threads", 1)))
        return self.data[1]

    def fit(self, parameters, config):
        x, y, _, _ = self.set_data(config)
        self.set_parameters(parameters)
        torch.manual_seed(config["seed"] % 2 ** 63)
        optimiser, steps = torch.optim.SGD(self.net.parameters(), lr=config["lr"], momentum=config.get("momentum", 0.0)), 0
        for _ in range(config["epochs"]):
            for batch in torch.randperm(len(y)).split(config["batch"]):
                optimiser.zero_grad()
                nn.functional.cross_entropy(self.net(x[batch]), y[batch]).backward()
                optimiser.step()
                steps += 1
        return self.get_parameters({}), len(y), {"steps": steps}

    def evaluate(self, parameters, config):
        _, _, x, y = self.set_data(config)
        self.set_parameters(parameters)
        with torch.no_grad():
            out = self.net(x)
            loss = nn.functional.cross_entropy(out, y)
        return float(loss), len(y), {"accuracy": float((out.argmax(1) == y).float().mean())}


if __name__ == "__main__":
    kedge.run(DigitsClient(), trainer="digits-pytorch")
