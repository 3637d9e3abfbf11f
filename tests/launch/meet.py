# SPDX-License-Identifier: Apache-2.0
"""A worker that listens on its address of TF_CONFIG, greets all others, and is greeted by them."""
import json
import os
import socket
import time

config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
own = config["cluster"][task["type"]][task["index"]]
everyone = [address for job in config["cluster"].values() for address in job]


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


def connect(address):
    for _ in range(600):
        try:
            return socket.create_connection(split(address), timeout=60)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit(f"{address} does not listen")


with socket.create_server(split(own)) as server:  # sets SO_REUSEADDR, as servers do
    server.settimeout(60)
    for address in everyone:
        with connect(address) as peer:
            peer.sendall(own.encode() + b"\n")
    greeted_by = []
    while len(greeted_by) < len(everyone):
        with server.accept()[0] as peer:
            greeted_by.append(peer.makefile().readline().strip())
assert sorted(greeted_by) == sorted(everyone), greeted_by
print("met", len(everyone))
