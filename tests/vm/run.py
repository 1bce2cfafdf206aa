#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command in a virtual machine that has a soft-RoCE device, on this machine's own files.

    python3 tests/vm/run.py -- ibv_devinfo
    python3 tests/vm/run.py --nodes 2 -- sh -c 'ping -c 1 node$((1 - VM_NODE))'

The guest sees this machine's file system; what it writes is gone afterwards, but for what it leaves
in the folder $VM_JOB, which all nodes share and --results keeps. The exit status is the command's; 77
with the reason printed where this machine cannot run the guest; 124 where a guest did not come to its
end, also for the time limit."""
import argparse
import pathlib
import signal
import sys

import kernel
import machine

SKIPPED, FAILED = 77, 124


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2] / "build" / "vm",
                        help="where the kernel is kept (build/vm)")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1,
                        help="two: two guests with a wire between them; both run the command")
    parser.add_argument("--ports", type=int, default=1,
                        help="interfaces of a node, each with a soft-RoCE device of its own (1)")
    parser.add_argument("--cpus", type=int, help="virtual processors of a node")
    parser.add_argument("--memory", type=int, default=2048, metavar="MIB", help="of a node (2048)")
    parser.add_argument("--icount", action="store_true",
                        help="one processor whose time is a count of instructions")
    parser.add_argument("--layer", type=pathlib.Path, action="append", default=[],
                        help="a folder whose files the guest finds at its root")
    parser.add_argument("--results", type=pathlib.Path,
                        help="copy the files that the command left in $VM_JOB/results here")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="after --")
    arguments = parser.parse_args()
    if arguments.command[:1] == ["--"]:
        del arguments.command[0]
    if not arguments.command:
        parser.error("needed a command after --")
    for layer in arguments.layer:
        if not layer.is_dir() or "," in str(layer):  # qemu's options end at a comma
            parser.error(f"--layer {layer}: needed a folder without ',' in its name")
    return arguments


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))  # leaves nothing behind
    options = machine.Options(arguments.nodes, arguments.cpus, arguments.memory, arguments.icount,
                              [layer.resolve() for layer in arguments.layer], arguments.ports)
    try:
        files = kernel.prepare(arguments.folder.resolve())
        return machine.run(arguments.command, files, arguments.folder.resolve(), options,
                           arguments.timeout, arguments.results)
    except kernel.Unavailable as reason:
        print(f"vm: skipped: {reason}")
        return SKIPPED
    except machine.Failed as failure:
        print(f"vm: {failure}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
