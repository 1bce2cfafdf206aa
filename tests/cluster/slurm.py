# SPDX-License-Identifier: BSD-3-Clause
"""What the tests on the cluster know of Slurm."""
import os
import subprocess
import time

import settings

# Seconds for the last trace of a job to go, on a busy machine.
PATIENCE = 15


def is_idle(nodes):
    """Whether it takes jobs for all machines, and none has any."""
    said = subprocess.run(["sinfo", "--noheader", "--Node", "--states=idle"], capture_output=True, text=True, check=False)
    return said.stdout.count("idle") == nodes


def waits_until_idle(nodes):
    end = time.monotonic() + PATIENCE
    while not is_idle(nodes):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def wait_until_idle():
    """Until jobs before have left all machines, so that the next begins at once.

    Slurm 22.05's step manager hangs now and then where a step is killed by a task's word to its PMI-2 server (1 of
    some 30): it closes a descriptor that its agent still reads, which then takes the words of another connection.
    Nothing new would start on that machine, so it is ended, as an administrator would."""
    nodes = int(os.environ["CLUSTER_NODES"])
    if waits_until_idle(nodes):
        return
    for node in range(nodes):
        subprocess.run(["ssh", settings.name(node), "pkill", "-KILL", "slurmstepd"], check=False)
    machines = f"nodename={','.join(map(settings.name, range(nodes)))}"
    for state in ("state=down", "reason=hung"), ("state=resume",):  # the controller asks again after minutes only
        subprocess.run(["scontrol", "update", machines, *state], check=True)
    if not waits_until_idle(nodes):
        raise TimeoutError("jobs of Slurm have not left all machines")
    print("cluster: a step manager of Slurm's hung, and was ended", flush=True)
