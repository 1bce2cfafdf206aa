# SPDX-License-Identifier: BSD-3-Clause
"""Guests: qemu processes that run a command on this machine's own files, with soft-RoCE below.

KVM is not used: on machines that are guests themselves it may be there and not work."""
import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Failed(Exception):
    """A guest ended, or was ended, before its command did."""


class Options:
    """How the guests are made."""

    def __init__(self, nodes=1, cpus=None, memory=2048, icount=False, layers=(), ports=1):
        self.nodes = nodes
        self.ports = ports  # interfaces of a guest, each with soft-RoCE
        self.memory = memory  # MiB
        self.icount = icount  # guest time is a count of instructions: it repeats to the digit
        # More virtual processors than real ones would only wait for each other.
        self.cpus = 1 if icount else cpus or max(1, (os.cpu_count() or 1) // nodes)
        self.layers = layers  # folders whose files the guest finds at its root

    def accelerator(self):
        if self.icount:
            return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off,align=off",
                    "-cpu", "max"]
        # The least of processors: wide registers, guarded pages and a fifth level of page tables
        # cost an emulated one more time than they save.
        return ["-accel", "tcg,thread=multi", "-cpu", "qemu64"]

    def kernel_parameters(self):
        """Of the clock: to read the processor's own costs no system call, but only where time is a
        count of instructions does the kernel measure its speed right: a busy host delays it. And where
        no instructions are counted for figures, without what the kernel does for security: a
        sixteenth of the time."""
        if self.icount:
            return "clocksource=tsc tsc=reliable"
        return "clocksource=hpet init_on_alloc=0 lsm= cryptomgr.notests"


def share(path, tag, *more):
    # Without root's rights qemu cannot give files the owner that the guest wants.
    model = "none" if os.geteuid() == 0 else "mapped-xattr"
    words = ["local", f"path={path}", f"mount_tag={tag}", f"security_model={model}", *more]
    return ["-virtfs", ",".join(words)]


class Machine:
    """One guest. `link`: a connected socket to the other guest, or None."""

    def __init__(self, node, job, kernel, options, link):
        self.node = node
        self.results = job / f"node{node}"
        self.results.mkdir()
        self.console = self.results / "console"
        self.shown = 0  # bytes of the output
        (self.results / "output").touch()
        image, initramfs = kernel
        network = []  # all interfaces are plugged into one hub, and the wire to the other guest too
        for port in range(options.ports):
            address = f"52:54:00:00:{port:02x}:{node + 1:02x}"
            network += ["-netdev", f"hubport,id=port{port},hubid=0",
                        "-device", f"virtio-net-pci,netdev=port{port},mac={address},romfile="]
        if link:
            network += ["-netdev", f"socket,id=wire,fd={link.fileno()}",
                        "-netdev", "hubport,id=uplink,hubid=0,netdev=wire"]
        layers = [word for i, folder in enumerate(options.layers)
                  for word in share(folder, f"layer{i}", "readonly=on")]
        arguments = [
            "setpriv", "--pdeathsig", "KILL",  # whatever ends us ends the guest
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", *options.accelerator(),
            "-m", str(options.memory), "-smp", str(options.cpus),
            "-kernel", image, "-initrd", initramfs,
            "-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check "
                       f"{options.kernel_parameters()} NODE={node}",
            "-serial", f"file:{self.console}",
            *share("/", "host", "readonly=on", "multidevs=remap"), *share(job, "job"),
            *layers, *network]
        with open(self.results / "qemu", "w", encoding="utf8") as errors:
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                pass_fds=[link.fileno()] if link else [])

    def status(self):
        """The exit status of the command, None while it runs."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((self.results / "status").read_text())
        return None

    def show_output(self, prefix):
        """Copies what is new in the command's output."""
        with open(self.results / "output", "rb") as output:
            output.seek(self.shown)
            new = output.read()
        if prefix:  # whole lines only
            new = new[:new.rfind(b"\n") + 1]
        self.shown += len(new)
        for line in new.splitlines(keepends=True):
            sys.stdout.buffer.write(prefix.encode() + line)
        sys.stdout.flush()

    def tail(self):
        """The last lines of what the guest's kernel and qemu said."""
        lines = []
        for file in (self.results / "qemu", self.console):
            with contextlib.suppress(FileNotFoundError):
                lines += file.read_text(encoding="utf8", errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-50:])

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def follow(machines, seconds):
    """Shows the output until every node has a status. Returns the first that is not 0, or 0."""
    deadline = time.monotonic() + seconds
    while any(machine.status() is None for machine in machines):
        for machine in machines:
            machine.show_output(f"node{machine.node}: " if len(machines) > 1 else "")
            if machine.process.poll() is not None and machine.status() is None:
                raise Failed(f"node {machine.node} ended before its command did; its console:\n"
                             f"{machine.tail()}")
        if time.monotonic() > deadline:
            silent = next(machine for machine in machines if machine.status() is None)
            raise Failed(f"the time limit of {seconds} s; the console of node {silent.node}:\n"
                         f"{silent.tail()}")
        time.sleep(0.05)
    for machine in machines:
        machine.show_output(f"node{machine.node}: " if len(machines) > 1 else "")
    return next((machine.status() for machine in machines if machine.status()), 0)


def run(command, kernel, folder, options, seconds, results=None):
    """Runs `command`, words, on every node, in the current folder, and returns its exit status.

    The guest finds in VM_NODE and VM_NODES which one it is, and in VM_JOB a folder that it can write
    and that all nodes see. The folder is gone afterwards; what is in its `results` is copied to the
    folder `results`. Raises Failed when a guest does not come to the end within `seconds`."""
    with contextlib.ExitStack() as stack:
        job = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        (job / "results").mkdir()
        (job / "settings").write_text(
            f"JOB={shlex.quote(str(job))}\nNODES={options.nodes}\nLAYERS={len(options.layers)}\n")
        (job / "command").write_text(f"cd {shlex.quote(os.getcwd())} || exit\n"
                                     f"exec {shlex.join(command)}\n")
        links = [None]
        if options.nodes == 2:
            # A pair that only these two processes have: nobody else can reach the guests.
            links = [stack.enter_context(end) for end in socket.socketpair()]
        machines = []
        for node in range(options.nodes):
            machines.append(Machine(node, job, kernel, options, links[node]))
            stack.callback(machines[-1].end)
        for link in filter(None, links):
            link.close()
        status = follow(machines, seconds)
        (job / "over").touch()
        for machine in machines:  # it powers off; where it does not, it is ended
            with contextlib.suppress(subprocess.TimeoutExpired):
                machine.process.wait(timeout=20)
        if results:
            shutil.copytree(job / "results", results, dirs_exist_ok=True)
        return status
