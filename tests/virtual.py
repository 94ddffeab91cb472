# SPDX-License-Identifier: BSD-3-Clause
"""Handlers on a machine that few have, with several memory nodes and a pool of huge pages:
`make check-virtual`.

    virtual.py [KERNEL]

QEMU makes it: Linux with two nodes, and this machine's own files, read-only, beneath it.  KERNEL is
a folder with boot/vmlinuz-* and the modules of that kernel in lib/modules, as Debian's packages
linux-image-* have them, / unless told.  Needs qemu-system-x86_64 as well, a static busybox, and
cpio.  Emulation is slow, and time says nothing there.

In the machine, as `virtual.py --inside`, this prints TAP.
"""

import glob
import gzip
import lzma
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys

import suite

# What reaches the files and the other side, and what they need of other modules.
MODULES = ("virtio_pci", "9pnet_virtio", "9p")
POOL = 200  # huge pages of 2 MiB: a child that writes where none is left is killed
SCRATCH = "/mnt"  # in the machine, where something can be written

INIT = """#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
for module in {modules}; do insmod /$module; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 files /root
mount -t proc proc /root/proc
mount -t sysfs sysfs /root/sys
mount -t devtmpfs devtmpfs /root/dev
mkdir -p /root/dev/shm
mount -t tmpfs tmpfs /root/dev/shm
mount -t tmpfs tmpfs /root{scratch}
ip link set lo up
cp /command /root{scratch}
chroot /root /bin/sh {scratch}/command >/root/dev/ttyS1 2>&1
poweroff -f
"""

# Without AVX2: emulated, it makes NumPy's argpartition wrong each time (QEMU 7.2).
QEMU = """qemu-system-x86_64 -accel tcg,thread=multi -cpu max,-avx2 -smp 2 -m 3G -display none
    -no-reboot -nodefaults -serial file:console -serial file:output
    -object memory-backend-ram,id=first,size=1536M -numa node,nodeid=0,memdev=first,cpus=0
    -object memory-backend-ram,id=second,size=1536M -numa node,nodeid=1,memdev=second,cpus=1
    -fsdev local,id=files,path=/,security_model=none,readonly=on,multidevs=remap
    -device virtio-9p-pci,fsdev=files,mount_tag=files
    -kernel vmlinuz -initrd initramfs -append"""

# Writes its header before the policy is there, so that the first page is wherever it runs.  With
# one node nobody could tell.
TOUCHES_FIRST = r"""
#define _GNU_SOURCE
#include <numaif.h>
#include <sys/mman.h>
#include "sound/base.h"

enum { PAGE = 4096 };

FUNCTION(malloc, touching)
{
    unsigned long node = 1ul << NODE;
    if (size > PTRDIFF_MAX - 2 * PAGE)
        return NULL;
    size_t length = (size + 2 * PAGE - 1) / PAGE * PAGE;
    size_t *start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    start[0] = size, start[1] = length;
    mbind(start, length, MPOL_BIND, &node, 64, 0);
    return start + 8;
}

FUNCTION(free, touching)
{
    if (p != NULL)
        munmap((size_t *)p - 8, ((size_t *)p)[1 - 8]);
}

static size_t touching_size(void *p)
{
    return ((size_t *)p)[-8];
}
DERIVE_CALLOC(touching);
DERIVE_REALLOC(touching, touching_size);

#define STRING(x) #x
#define BIND(node) "numa=bind:" STRING(node) "@1"
NEP49_EXPORT const char nep49_claims[] = BIND(NODE);
SOUND(nep49_handler, FUNCTIONS(touching));
"""


# ---- outside ------------------------------------------------------------------------------------

def find_kernel(folder):
    """The newest kernel there, and the folder of its modules; None where there is none."""
    for kernel in sorted(glob.glob(os.path.join(folder, "boot", "vmlinuz-*")), reverse=True):
        modules = os.path.join(folder, "lib", "modules", kernel.partition("vmlinuz-")[2])
        if find_module(modules, "9p"):
            return kernel, modules
    return None


def find_module(modules, name):
    """Its file, whichever way its name is spelt, or None: it is a part of the kernel."""
    pattern = re.compile(name.replace("_", "[-_]") + r"\.ko(\.xz|\.gz)?$")
    for path, _, files in os.walk(modules):
        for file in files:
            if pattern.match(file):
                return os.path.join(path, file)
    return None


def load_order(modules, names, order):
    """Adds to `order`, name to content, each of them behind those that it says it depends on."""
    for name in names:
        path = find_module(modules, name)
        if path is None or name in order:
            continue
        reader = {".xz": lzma.open, ".gz": gzip.open}.get(os.path.splitext(path)[1], open)
        with reader(path, "rb") as file:
            content = file.read()
        depends = re.search(rb"\0depends=([^\0]*)\0", content).group(1).decode()
        load_order(modules, filter(None, depends.split(",")), order)
        order[name] = content


def command_inside():
    names = ("CC", "CONFORM", "PYTHON", "top_builddir", "top_srcdir", "NUMPY_VERSION")
    words = ["%s=%s" % (name, shlex.quote(os.environ[name])) for name in names]
    words += ["PATH=" + shlex.quote(os.environ["PATH"]), "TMPDIR=" + SCRATCH, "HOME=" + SCRATCH]
    return "cd %s && env %s %s -B %s --inside %s\n" % (
        shlex.quote(os.getcwd()), " ".join(words), shlex.quote(suite.PYTHON),
        shlex.quote(os.path.abspath(__file__)), shlex.quote(os.path.abspath("touches_first")))


def write_initramfs(modules):
    """The file `initramfs`: busybox, the modules, and what to do."""
    order = {}
    load_order(modules, MODULES, order)
    for folder in ("bin", "proc", "root", "dev"):
        os.makedirs(os.path.join("initramfs.d", folder))
    shutil.copy(shutil.which("busybox"), "initramfs.d/bin")
    for name, content in order.items():
        with open(os.path.join("initramfs.d", name), "wb") as file:
            file.write(content)
    with open("initramfs.d/init", "w") as file:
        file.write(INIT.format(modules=" ".join(order), scratch=SCRATCH))
    os.chmod("initramfs.d/init", 0o755)
    with open("initramfs.d/command", "w") as file:
        file.write(command_inside())
    subprocess.run("find . | cpio --quiet -o -H newc >../initramfs", shell=True,
                   cwd="initramfs.d", check=True)


def read(path):
    with open(path, encoding="utf-8", errors="backslashreplace", newline="") as file:
        return file.read().replace("\r\n", "\n")


def boot(kernel, modules):
    """What was printed inside, and what the kernel said."""
    write_initramfs(modules)
    shutil.copy(kernel, "vmlinuz")
    with open("touches_first.c", "w") as file:
        file.write(TOUCHES_FIRST)
    for node in range(2):
        suite.build("touches_first.c", "touches_first%d.so" % node, "-DNODE=%d" % node, "-lnuma")
    arguments = ["console=ttyS0 quiet panic=-1 hugepages=%d" % POOL]
    machine = suite.run(QEMU.split() + arguments, timeout=1800)
    return read("output"), "%s\nqemu: %s" % (read("console"), machine)


def outside(folder):
    missing = [tool for tool in ("qemu-system-x86_64", "busybox", "cpio") if not shutil.which(tool)]
    found = find_kernel(folder)
    if platform.machine() != "x86_64":
        missing = ["an x86-64 machine"]
    elif found is None:
        missing.append("a kernel with its 9p module in " + folder)
    if missing:
        sys.exit("check-virtual: missing: %s.  On Debian ./bootstrap --ci-tools installs the "
                 "programs; for a kernel unpack a package linux-image-* with dpkg -x, and give its "
                 "folder by KERNEL=FOLDER." % ", ".join(missing))
    os.chdir(suite.BUILD)
    with suite.scratch() as scratch:
        os.chdir(scratch)
        output, console = boot(*found)
        os.chdir(os.pardir)
    print(output, end="")
    if not re.search("^# FAIL: ", output, re.M):
        sys.exit("check-virtual: the machine did not come to its end:\n" + console)
    sys.exit(1 if re.search("^not ok", output, re.M) else 0)


# ---- inside -------------------------------------------------------------------------------------

# NEP49_NUMA, and the claim that has to come of it.
POLICIES = {
    "local": "numa=local",
    "interleave": "numa=interleave:0-1",
    "interleave:0-1": "numa=interleave:0-1",
    "interleave:1": "numa=interleave:1",
    "bind:0": "numa=bind:0",
    "bind:1": "numa=bind:1",
    "bind:0,1": "numa=bind:0-1",
}


def try_policy(tap, policy, cpu):
    """On either processor: with one node beneath it, "wherever it runs" is right by chance."""
    result = suite.run(["taskset", "-c", str(cpu), suite.CONFORM, "--handler=numa", "--timeout=120",
                        "--run=claim.numa", "--verbose"], env={"NEP49_NUMA": policy}, timeout=600)
    passed = re.search(r"^PASS +claim\.numa ", result.stdout, re.M)
    tap.point(result.code == 0 and passed and POLICIES[policy] + "@" in result.stdout,
              "NEP49_NUMA=%s on processor %d: the pages are there" % (policy, cpu), result)


# What is left of the pool, as arrays are made, are too many for it, and go.
TAKES_FROM_THE_POOL = """
import re
import numpy as np

def left():
    with open("/proc/meminfo") as file:
        return int(re.search("HugePages_Free: *([0-9]+)", file.read()).group(1))

first = left()
arrays = [np.zeros(8 << 20, np.uint8)]
arrays[0] += 1
one = left()
while left() > 4:
    arrays.append(np.ones(8 << 20, np.uint8))
arrays += [np.ones(8 << 20, np.uint8) for _ in range(3)]
assert all(a.min() == a.max() == 1 for a in arrays)
arrays.clear()
print(first, first - one, left())
"""


def try_nodes(tap, mutant):
    nodes = sorted(glob.glob("/sys/devices/system/node/node[0-9]*"))
    tap.point(len(nodes) == 2, "there are two memory nodes", nodes)
    for policy in POLICIES:
        for cpu in range(2):
            try_policy(tap, policy, cpu)
    for node in range(2):
        result = suite.run(["taskset", "-c", str(1 - node), suite.CONFORM,
                            "--handler=%s%d.so" % (mutant, node), "--timeout=120",
                            "--run=claim.numa"], timeout=600)
        tap.point(result.code == suite.NOT_CONFORMANT and "1 of 21 pages on other nodes" in
                  result.stdout, "touches_first is killed by claim.numa on node %d" % node, result)
    result = suite.conform("--handler=numa", env={"NEP49_NUMA": "bind:0,2"}, timeout=600)
    tap.point(result.code == suite.CANNOT_WORK_HERE and "NEP49_NUMA='bind:0,2'" in result.stderr,
              "a node that is not there is refused", result)
    for policy in ("interleave", "bind:1"):
        try_battery(tap, "numa", {"NEP49_NUMA": policy, "NEP49_NUMA_FROM": "4K"})


def try_pool(tap):
    with open(os.path.join(SCRATCH, "takes.py"), "w") as file:
        file.write(TAKES_FROM_THE_POOL)
    settings = {"NEP49_HUGEPAGE_POOL": "1", "NEP49_HUGEPAGE_FROM": "1M"}
    result = suite.conform("exec", "--handler=hugepage", file.name, env=settings, timeout=600)
    tap.point(result.code == 0 and result.stdout.startswith("%d 5 %d\n" % (POOL, POOL)),
              "an array of 8 MiB and its header take five pages of the pool, and give them back",
              result)
    result = suite.conform("--handler=hugepage", "--timeout=120", "--run=claim.hugepage",
                           "--verbose", env=settings, timeout=600)
    tap.point(result.code == 0 and re.search(r"^PASS +claim\.hugepage ", result.stdout, re.M),
              "claim.hugepage finds the pages of the pool", result)
    try_battery(tap, "hugepage", settings)


def try_battery(tap, handler, settings):
    result = suite.conform("--handler=" + handler, "--timeout=120", "--max-time=1000",
                           timeout=1200, env=settings)
    words = " ".join("%s=%s" % item for item in settings.items())
    tap.point(result.code == 0, "the whole battery with " + words, result)


def inside(mutant):
    tap = suite.Tap()
    try_nodes(tap, mutant)
    try_pool(tap)
    print("1..%d\n# PASS: %d\n# FAIL: %d" % (tap.count, tap.count - tap.failed, tap.failed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2])
    else:
        outside(os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "/")
