# SPDX-License-Identifier: BSD-3-Clause
"""The first process of the namespaces that hold a cluster (run.py starts it): makes the network and the
machines, and is gone with them when the command on the first machine has ended.

    world.py NODES ROOT COMMAND..."""
import pathlib
import subprocess
import sys

import settings

NODE = pathlib.Path(__file__).with_name("node.py")


def make_network(nodes):
    """A bridge, and for each machine a namespace with one end of a wire to it. Nothing leads out."""
    run = lambda *words: subprocess.run(["ip", *words], check=True)
    run("link", "add", "bridge", "type", "bridge")
    run("link", "set", "bridge", "up")
    for node in range(nodes):
        space, wire = settings.name(node), f"wire{node}"
        run("netns", "add", space)
        run("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
        run("link", "set", wire, "master", "bridge", "up")
        run("-n", space, "address", "add", f"{settings.address(node)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            run("-n", space, "link", "set", device, "up")


def start_machine(node, nodes, root, command):
    return subprocess.Popen(["ip", "netns", "exec", settings.name(node), "unshare", "--mount", "--uts",
                             "--ipc", "--pid", "--fork", "--kill-child", sys.executable, "-B", NODE,
                             str(node), str(nodes), root, *command])


def main():
    nodes, root, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    for folder in ("/run", settings.SHARED):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", folder], check=True)
    settings.make_shared(nodes)
    make_network(nodes)
    others = [start_machine(node, nodes, root, []) for node in range(1, nodes)]
    first = start_machine(0, nodes, root, command)
    status = first.wait()
    del others  # they end with this process, the first of their namespace
    return status if status >= 0 else 124


if __name__ == "__main__":
    sys.exit(main())
