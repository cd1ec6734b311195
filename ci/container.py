#!/usr/bin/env python3
"""Does the steps of ci/Dockerfile in an empty Debian, for machines that have no Docker.

    python3 ci/container.py [SUITE]        # bookworm

As root, with debootstrap. In the place of the image `python:...-slim` it has Debian's Python, in
an environment below /usr/local, with a pip that takes packages from a folder: the empty Debian need
not reach an index.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
DOCKERFILE = TOP / "ci" / "Dockerfile"
PATH = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"


def instructions(text: str) -> list[tuple[str, str]]:
    """The Dockerfile's instructions, as word and rest."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    parts = [line.partition(" ") for line in joined.splitlines()]
    return [(word, rest.strip()) for word, _, rest in parts]


def context(target: Path) -> None:
    """Copy what ci/Dockerfile.dockerignore lets through."""
    text = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8")
    patterns = [line for line in text.splitlines() if line and line[0] != "#"][1:]
    anywhere = [line[3:] for line in patterns if line.startswith("**/")]
    for name in [line[1:] for line in patterns if line.startswith("!")]:
        if (TOP / name).is_dir():
            ignored = shutil.ignore_patterns(*anywhere)
            shutil.copytree(TOP / name, target / name, ignore=ignored)
        else:
            shutil.copy(TOP / name, target / name)
    for line in patterns:
        if line[0] not in "!*":
            shutil.rmtree(target / line, ignore_errors=True)


def in_root(root: Path, command: str, *options: str, **how: Any) -> str:
    """Run a command in an empty Debian; what it prints where `stdout` says that it is wanted."""
    line = ["chroot", *options, str(root), "sh", "-euc", command]
    done = subprocess.run(line, check=True, stdin=subprocess.DEVNULL, text=True, **how)
    return done.stdout or ""


def run(root: Path, command: str, state: dict[str, str], variables: dict[str, str]) -> None:
    """One RUN, as the user and in the folder that the instructions before it have set."""
    user, folder = state["user"], shlex.quote(state["folder"])
    options = [f"--userspec={user}:{user}"] if user != "root" else []
    home = f"/home/{state['user_name']}" if user != "root" else "/root"
    environment = {"PATH": PATH, "HOME": home, "LANG": "C.UTF-8", **variables}
    print(f"container: {state['stage']}: {command}", flush=True)
    in_root(root, f"cd {folder} && {command}", *options, env=environment)


def needed() -> list[str]:
    """What the wheel is built with, what it needs, and a runtime."""
    setup = (TOP / "setup.py").read_text(encoding="utf-8")
    project = (TOP / "pyproject.toml").read_text(encoding="utf-8")
    lists = [
        re.search(r"install_requires=\[(.*?)\]", setup)[1],
        re.search(r"(?m)^requires = \[(.*?)\]", project)[1],
    ]
    names = [name.strip().strip('"') for each in lists for name in each.split(",")]
    return [*names, "wheel", "intel-opencl-rt", "intel-cmplr-lib-rt"]


def base_image(root: Path, suite: str) -> None:
    """What `python:...-slim` has; and the packages that pip is asked for, in /needs."""
    packages = "python3,python3-venv,python3-dev,ca-certificates"
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={packages}", suite, str(root)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if made.returncode:
        sys.exit(made.stdout[-2000:])
    in_root(root, "python3 -m venv /usr/local")
    asked = "import sys; print(*sys.version_info[:2], sep='.')"
    version = in_root(root, f'python3 -c "{asked}"', stdout=subprocess.PIPE).strip()
    subprocess.run(
        [
            sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download",
            "--only-binary=:all:", "--python-version", version, "--dest", str(root / "needs"),
            *needed(),
        ],
        check=True,
    )  # fmt: skip


def main(suite: str) -> None:
    """Every instruction, and what the image's command prints at the end."""
    if os.geteuid() or not shutil.which("debootstrap"):
        sys.exit("ci/container.py: it takes root and debootstrap")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        base_image(work / "base", suite)
        variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/needs"}
        stages: dict[str, Path] = {}
        state = {"user": "root", "user_name": "", "folder": "/", "stage": ""}
        root, entry, mounted = work, [], []
        try:
            for word, rest in instructions(DOCKERFILE.read_text(encoding="utf-8")):
                if word == "FROM":
                    name = rest.partition(" AS ")[2] or "image"
                    root = stages[name] = work / name
                    subprocess.run(["cp", "-a", str(work / "base"), str(root)], check=True)
                    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
                    mounted.append(root / "proc")
                    state |= {"stage": name, "user": "root", "folder": "/"}
                elif word == "RUN":
                    run(root, rest, state, variables)
                    if found := re.search(r"useradd .*?(\w+) *&&", rest):
                        state["user_name"] = found[1]
                elif word == "WORKDIR":
                    state["folder"] = rest
                    (root / rest[1:]).mkdir(parents=True, exist_ok=True)
                elif word == "COPY" and rest == ". .":
                    context(root / state["folder"][1:])
                elif word == "COPY":
                    found = re.fullmatch(r"--from=(\w+) /(\S+) /(\S+)", rest)
                    stage, source, target = found.groups()
                    shutil.copytree(stages[stage] / source, root / target)
                elif word == "ENV":
                    variables |= [rest.split("=", 1)]
                elif word == "USER":
                    state["user"] = rest
                elif word in ("ENTRYPOINT", "CMD"):
                    entry += re.findall(r'"(.*?)"', rest)
                else:
                    sys.exit(f"ci/container.py: no such instruction here: {word}")
            run(root, shlex.join(entry), state, variables)
        finally:
            for place in mounted:
                subprocess.run(["umount", str(place)])
    print("container: every instruction of ci/Dockerfile works")


main(*(sys.argv[1:2] or ["bookworm"]))
