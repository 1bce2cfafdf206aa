# SPDX-License-Identifier: BSD-3-Clause
"""The guest's kernel and first file system, made from Debian's packages and kept in the build tree.

The kernel package is unpacked, never installed: of its 400 MB the image and the few modules of
MODULES stay. The initramfs is a static busybox, those modules and the scripts `init` and `network`."""
import contextlib
import fcntl
import lzma
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "linux-image-amd64"  # depends on the kernel of this release
BUSYBOX = pathlib.Path("/bin/busybox")
# What they depend on is found in modules.dep. rdma_rxe wants crc32 but does not say so.
MODULES = ["virtio_pci", "virtio_net", "9p", "9pnet_virtio", "overlay", "crc32_generic",
           "crc32_pclmul", "rdma_rxe", "ib_uverbs", "rdma_ucm"]


class Unavailable(Exception):
    """This machine cannot run the virtual machine; the text is the reason, for the user."""


def command(*words):
    """The output of a command that must work."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{words[0]}: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Unavailable(f"{' '.join(str(word) for word in words)}: {last}")
    return done.stdout


@contextlib.contextmanager
def only_one(folder):
    """Tests that start at the same time do not fetch the kernel twice."""
    with open(folder / "lock", "w", encoding="utf8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kernel_package():
    """The name of the package that has this release's kernel, such as linux-image-6.1.0-56-amd64."""
    show = ["apt-cache", "show", "--no-all-versions", PACKAGE]
    try:
        text = command(*show)
    except Unavailable:
        if os.geteuid() != 0:
            raise
        command("apt-get", "update", "-qq")  # a fresh machine has no lists of packages
        text = command(*show)
    found = re.search(r"^Depends:.*?\b(linux-image-\d\S*)", text, re.MULTILINE)
    if not found:
        raise Unavailable(f"the package {PACKAGE} does not name a kernel; needed Debian's")
    return found[1]


def load_order(tree):
    """Files of MODULES and of all that they need below the module tree, each after its needs."""
    needs = {}
    for line in (tree / "modules.dep").read_text(encoding="utf8").splitlines():
        file, _, others = line.partition(":")
        needs[file] = others.split()
    by_name = {pathlib.Path(file).name.split(".ko")[0].replace("-", "_"): file for file in needs}
    order = []

    def add(file):
        for other in needs[file]:
            add(other)
        if file not in order:
            order.append(file)

    for name in MODULES:
        if name not in by_name:
            raise Unavailable(f"the kernel in {tree} has no module {name}")
        add(by_name[name])
    return order


def unpacked(image):
    """The kernel inside a compressed image, which it would take the emulated processor long to
    unpack at each start. qemu starts it by its PVH entry."""
    data = image.read_bytes()
    start = data.find(b"\xfd7zXZ\0")
    if start < 0:
        raise Unavailable(f"{image.name} is not compressed by xz, as Debian's kernels are")
    kernel = lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(data[start:])
    if not kernel.startswith(b"\x7fELF"):
        raise Unavailable(f"what {image.name} contains is no ELF file")
    return kernel


def fetch_kernel(folder):
    """Leaves `vmlinux` and `modules/NN-name.ko`, numbered in load order, in `folder`."""
    name = kernel_package()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        scratch = pathlib.Path(scratch)
        subprocess.run(["apt-get", "download", "-qq", name], cwd=scratch, capture_output=True,
                       timeout=600, check=False)
        packages = list(scratch.glob("*.deb"))
        if not packages:
            raise Unavailable(f"apt-get download {name}: nothing came; is there a network?")
        command("dpkg-deb", "--extract", packages[0], scratch)
        tree = next((scratch / "lib/modules").iterdir())
        command("depmod", "-b", scratch, tree.name)
        shutil.rmtree(folder / "modules", ignore_errors=True)
        (folder / "modules").mkdir()
        for number, file in enumerate(load_order(tree)):
            shutil.copy(tree / file, folder / "modules" / f"{number:02}-{pathlib.Path(file).name}")
        kernel = unpacked(next((scratch / "boot").glob("vmlinuz-*")))
        (scratch / "vmlinux").write_bytes(kernel)
        os.replace(scratch / "vmlinux", folder / "vmlinux")  # last: it says that all is there


def archive_entry(name, mode, data=b"", device=(0, 0)):
    """One entry of a cpio archive in the `newc` format, which the kernel unpacks."""
    path = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def make_initramfs(folder):
    program, plain_file = stat.S_IFREG | 0o755, stat.S_IFREG | 0o644
    entries = [archive_entry(name, stat.S_IFDIR | 0o755)
               for name in ("bin", "dev", "job", "modules", "root")]
    entries += [archive_entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
                archive_entry("bin/busybox", program, BUSYBOX.read_bytes()),
                *(archive_entry(name, program, (HERE / name).read_bytes())
                  for name in ("init", "network"))]
    entries += [archive_entry(f"modules/{file.name}", plain_file, file.read_bytes())
                for file in sorted((folder / "modules").iterdir())]
    entries.append(archive_entry("TRAILER!!!", 0))
    new = folder / "initramfs.new"
    new.write_bytes(b"".join(entries))
    os.replace(new, folder / "initramfs")


def busybox_is_static():
    try:
        return b"/lib64/ld-linux" not in BUSYBOX.read_bytes()
    except OSError:
        return False


def prepare(folder):
    """(kernel image, initramfs), made in `folder` unless they are there. Raises Unavailable."""
    if os.uname().machine != "x86_64":
        raise Unavailable(f"this machine is {os.uname().machine}, the guest an x86_64")
    for tool, package in (("qemu-system-x86_64", "qemu-system-x86"), ("rdma", "iproute2"),
                          ("ip", "iproute2"), ("apt-get", "apt"), ("dpkg-deb", "dpkg"),
                          ("depmod", "kmod"), ("setpriv", "util-linux")):
        if not shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            raise Unavailable(f"there is no {tool} (Debian's package {package})")
    if not busybox_is_static():
        raise Unavailable(f"{BUSYBOX} is not static or not there (Debian's package busybox-static)")
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(folder):
        if not (folder / "vmlinux").exists():
            fetch_kernel(folder)
        make_initramfs(folder)  # a moment's work; so it always has the current scripts
    return folder / "vmlinux", folder / "initramfs"
