# SPDX-License-Identifier: BSD-3-Clause
"""What the cluster is: names and addresses of its machines, and the files of Slurm, munge and ssh."""
import os
import pathlib
import subprocess

SHARED = pathlib.Path("/mnt")  # a folder that all machines see, in memory, gone with the cluster
LOGS = SHARED / "log"
CPUS = 8  # of a machine, as Slurm counts them: the tests have more ranks than there are cores


def name(node):
    return f"node{node}"


def address(node):
    return f"10.99.0.{node + 1}"


def slurm(nodes):
    return f"""
ClusterName=macadam
SlurmctldHost={name(0)}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={SHARED}/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={LOGS}/slurmctld
SlurmdLogFile={LOGS}/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={name(0)},{",".join(map(name, range(1, nodes)))} CPUs={CPUS} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


SSHD = f"""
HostKey {SHARED}/ssh/host
AuthorizedKeysFile {SHARED}/ssh/user.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
PidFile none
"""

SSH = f"""
IdentityFile {SHARED}/ssh/user
IdentitiesOnly yes
GlobalKnownHostsFile {SHARED}/ssh/known
UserKnownHostsFile /dev/null
StrictHostKeyChecking yes
"""


def make_shared(nodes):
    """Fills SHARED: keys that nobody has outside, and folders."""
    for folder in ("log", "ssh", "state"):
        (SHARED / folder).mkdir(mode=0o700)
    (SHARED / "munge.key").write_bytes(os.urandom(1024))
    (SHARED / "munge.key").chmod(0o400)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", SHARED / "ssh" / key],
                       check=True)
    public = (SHARED / "ssh/host.pub").read_text(encoding="utf8")
    names = ",".join(map(name, range(nodes)))
    (SHARED / "ssh/known").write_text(f"{names} {public}", encoding="utf8")


def make_etc(nodes):
    """The files of a machine; /etc is its own."""
    hosts = "".join(f"{address(node)} {name(node)}\n" for node in range(nodes))
    files = {"hosts": f"127.0.0.1 localhost\n{hosts}", "slurm/slurm.conf": slurm(nodes),
             "slurm/cgroup.conf": "CgroupPlugin=cgroup/v1\n",  # named, it is not looked for
             "ssh/sshd_config": SSHD, "ssh/ssh_config": SSH, "nsswitch.conf": "passwd: files\nhosts: files\n"}
    for file, text in files.items():
        path = pathlib.Path("/etc", file)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf8")
    with open("/etc/passwd", "r+", encoding="utf8") as users:
        if "\nsshd:" not in users.read():
            users.write("sshd:x:65530:65534::/run/sshd:/usr/sbin/nologin\n")
