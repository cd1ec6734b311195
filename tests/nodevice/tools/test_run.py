"""``python -m clfuse run`` gives clfuse to a program and to the modules beside it, and to nobody
else.
"""

import importlib
import os
import pkgutil
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pytest

import clfuse
from clfuse.tools.substitution import Substitution
from tests.support.processes import python

REPOSITORY = Path(__file__).parents[3]


def clfuse_run(
    *arguments: str, cwd: Path, text: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return python("-m", "clfuse", "run", *arguments, cwd=cwd, text=text, **variables)


def write(folder: Path, files: dict[str, str]) -> None:
    """Write source files: path below `folder` -> text."""
    for name, source in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")


def printed(folder: Path, source: str, *arguments: str) -> list[str]:
    write(folder, {"script.py": source})
    finished = clfuse_run("script.py", *arguments, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


# -- who gets what ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "import numpy; print(numpy.__name__)",
        "import numpy as np; print(np.__name__)",
        "import importlib; print(importlib.import_module('numpy').__name__)",
        "print(__import__('numpy').__name__)",
        "import pytest; print(pytest.importorskip('numpy').__name__)",
        "import pytest; print(pytest.importorskip('numpy.linalg').__name__[:6])",
        "names = {}; exec('import numpy', names); print(names['numpy'].__name__)",
        "print(eval('__import__(\"numpy\")').__name__)",
        "import sys; from numpy import sin; print(type(sin).__module__.partition('.')[0])",
        "from numpy import *; print(type(sin).__module__.partition('.')[0])",
    ],
)
def test_every_spelling_of_the_import_gives_clfuse(tmp_path, source):
    assert printed(tmp_path, source) == ["clfuse"]


def test_everything_from_numpy_hides_no_names_of_the_programs(tmp_path):
    source = """
        import sys
        device, kernel, stats, config = "device", "kernel", "stats", "config"
        from numpy import *
        import numpy
        print(device, kernel, stats, config, "jit" in globals(), "synchronize" in globals())
        print(sum is numpy.sum, arange is numpy.arange)
    """
    assert printed(tmp_path, source) == ["device kernel stats config False False", "True True"]


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("numpy", "sin concatenate ndarray linalg fft float64 pi newaxis astype vectorize"),
        ("numpy.fft", "fft irfftn fftshift fftfreq"),
        ("numpy.linalg", "norm solve LinAlgError"),
        ("numpy.random", "default_rng normal Generator"),
    ],
)
def test_packages_that_wrap_numpy_find_its_module_dictionary(tmp_path, module, names):
    source = f"""
        import {module} as module
        names = {names.split()}
        print(set(names) <= set(vars(module)), set(names) <= set(module.__dict__))
        print(all(vars(module)[name] is getattr(module, name) for name in names))
    """
    assert printed(tmp_path, source) == ["True True", "True"]


def test_import_inside_a_function_gives_clfuse_too(tmp_path):
    source = """
        def late():
            import numpy
            return numpy.__name__
        print(late())
    """
    assert printed(tmp_path, source) == ["clfuse"]


def test_submodules_are_reached_in_every_way(tmp_path):
    source = """
        import numpy
        import numpy as np
        import numpy.linalg as la
        import numpy.random
        from numpy import linalg, random
        from numpy.linalg import norm
        from numpy.random import default_rng
        import numpy.testing as testing
        import numpy.lib.stride_tricks
        from numpy.lib.stride_tricks import sliding_window_view
        print(numpy is np, la is linalg is np.linalg, la.norm is norm)
        print(random is numpy.random, random.default_rng is default_rng)
        tricks = numpy.lib.stride_tricks
        print(callable(testing.assert_allclose), tricks.sliding_window_view is sliding_window_view)
    """
    assert printed(tmp_path, source) == ["True True True", "True True", "True True"]


def test_the_class_of_arrays_is_shown_as_programs_know_it(tmp_path):
    source = "import numpy as np; print(type(np.ones(2)), np.ndarray)"
    assert printed(tmp_path, source) == ["<class 'numpy.ndarray'> <class 'numpy.ndarray'>"]


def test_name_that_numpy_has_not_is_an_import_error(tmp_path):
    write(tmp_path, {"script.py": "from numpy import no_such_name"})
    finished = clfuse_run("script.py", cwd=tmp_path)
    assert finished.returncode == 1
    assert "ImportError: cannot import name 'no_such_name'" in finished.stderr


def test_submodule_that_numpy_has_not_is_an_import_error(tmp_path):
    write(tmp_path, {"script.py": "import numpy.no_such_module"})
    finished = clfuse_run("script.py", cwd=tmp_path)
    assert finished.returncode == 1
    assert "ModuleNotFoundError: No module named 'numpy.no_such_module'" in finished.stderr


def test_modules_beside_the_script_get_clfuse(tmp_path):
    write(
        tmp_path,
        {
            "beside.py": "import numpy; name = numpy.__name__",
            "package/__init__.py": "from . import inner",
            "package/inner.py": "import numpy as np; name = np.__name__",
        },
    )
    source = "import beside, package; print(beside.name, package.inner.name)"
    assert printed(tmp_path, source) == ["clfuse clfuse"]


def test_installed_packages_and_modules_elsewhere_get_numpy(tmp_path, tmp_path_factory):
    project, elsewhere = tmp_path / "project", tmp_path_factory.mktemp("elsewhere")
    write(elsewhere, {"outside.py": "import numpy; name = numpy.__name__"})
    write(
        project / ".venv" / "lib" / "site-packages",
        {"installed.py": "import numpy; name = numpy.__name__"},
    )
    source = """
        import sys
        sys.path += [r"ELSEWHERE", r"INSTALLED"]
        import outside, installed
        print(outside.name, installed.name)
    """
    source = source.replace("ELSEWHERE", str(elsewhere)).replace(
        "INSTALLED", str(project / ".venv" / "lib" / "site-packages")
    )
    assert printed(project, source) == ["numpy numpy"]


NAMED = "import numpy; name = numpy.__name__"


@pytest.mark.parametrize("marker", ["pyproject.toml", "setup.py", ""])
def test_modules_of_the_scripts_project_get_clfuse(tmp_path, marker):
    script = "project/examples/script.py" if not marker else "project/examples/deep/script.py"
    source = "import sys; sys.path.append(sys.argv[1]); import ours.inner; print(ours.inner.name)"
    write(tmp_path, {script: source, "project/ours/inner.py": NAMED})
    if marker:
        write(tmp_path, {f"project/{marker}": ""})
    finished = clfuse_run(script, str(tmp_path / "project"), cwd=tmp_path)
    assert (finished.stdout, finished.stderr) == ("clfuse\n", "")


def test_modules_on_pythonpath_get_clfuse_unless_installed(tmp_path, tmp_path_factory):
    ours, target = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("target")
    write(ours, {"ours.py": NAMED})
    write(target, {"theirs.py": NAMED, "theirs-1.0.dist-info/METADATA": ""})
    folder = tmp_path / "project" / "scripts"
    write(folder, {"script.py": "import ours, theirs; print(ours.name, theirs.name)"})
    places = os.pathsep.join([str(ours), str(target)])
    finished = clfuse_run("script.py", cwd=folder, PYTHONPATH=places)
    assert finished.stdout == "clfuse numpy\n"
    assert finished.stderr == ""


@pytest.mark.parametrize("notes", [
    {"a-1.dist-info/direct_url.json": '{"url": "file://FOLDER", "dir_info": {"editable": true}}'},
    {"ours.egg-link": "FOLDER\n."},
])
def test_packages_in_editable_installs_get_clfuse(tmp_path, tmp_path_factory, notes):
    ours, elsewhere = tmp_path_factory.mktemp("ours of mine"), tmp_path_factory.mktemp("elsewhere")
    installed = tmp_path_factory.mktemp("environment") / "site-packages"
    write(ours, {"ours.py": NAMED})
    write(elsewhere, {"theirs.py": NAMED})
    shown = {"direct_url.json": str(ours).replace(" ", "%20")}
    write(installed, {
        name: text.replace("FOLDER", shown.get(name.rpartition("/")[2], str(ours)))
        for name, text in notes.items()
    })
    source = f"""
        import sys
        sys.path += [{str(installed)!r}, {str(ours)!r}, {str(elsewhere)!r}]
        import ours, theirs
        print(ours.name, theirs.name)
    """
    assert printed(tmp_path / "project" / "scripts", source) == ["clfuse numpy"]


def test_an_installed_package_gets_clfuse_where_it_is_included(tmp_path):
    write(tmp_path / "site-packages", {"theirs.py": NAMED})
    source = "import sys; sys.path.append('site-packages'); import theirs; print(theirs.name)"
    write(tmp_path, {"script.py": source})
    kept = clfuse_run("script.py", cwd=tmp_path)
    assert kept.stdout == "numpy\n"
    assert kept.stderr == (
        "clfuse run: nothing of this program used clfuse: no module of its project imports NumPy;"
        " theirs did, and kept it (--include PACKAGE gives clfuse to an installed package)\n"
    )
    included = clfuse_run("--include", "theirs", "script.py", cwd=tmp_path)
    assert (included.stdout, included.stderr) == ("clfuse\n", "")


def test_executed_text_gets_what_the_code_that_executes_it_gets(tmp_path):
    write(tmp_path / "site-packages", {"theirs.py": """
        def run(text):
            names = {"__name__": "another"}
            exec(text, names)
            return names["numpy"].__name__
    """})
    source = """
        import sys
        sys.path.append("site-packages")
        import theirs
        names = {"__name__": "another"}
        exec("import numpy", names)
        print(names["numpy"].__name__, theirs.run("import numpy"))
    """
    assert printed(tmp_path, source) == ["clfuse numpy"]


def test_a_seed_is_reported_once_unless_the_stream_is_numpys(tmp_path):
    source = "import numpy as np\nnp.random.seed(3)\nnp.random.default_rng(5)\nnp.random.seed(3)\n"
    write(tmp_path, {"script.py": source, "free.py": "import numpy as np; np.random.default_rng()"})
    (line,) = clfuse_run("script.py", cwd=tmp_path).stderr.splitlines()
    assert f"{tmp_path / 'script.py'}:2 sets a seed" in line
    assert "--exact-random" in line
    assert clfuse_run("--exact-random", "script.py", cwd=tmp_path).stderr == ""
    assert clfuse_run("free.py", cwd=tmp_path).stderr == ""


def test_a_device_that_is_not_there_ends_run_at_once(tmp_path):
    write(tmp_path, {"script.py": "print('started')"})
    finished = clfuse_run("--device", "no such device", "script.py", cwd=tmp_path)
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr.startswith("clfuse run: --device no such device: no")
    assert "Traceback" not in finished.stderr


def test_stats_of_a_program_without_kernels_say_why(tmp_path):
    write(tmp_path, {"script.py": "import numpy as np; print(np.arange(3).sum())"})
    finished = clfuse_run("--stats", "script.py", cwd=tmp_path, CLFUSE_HOST_US="50")
    assert finished.stdout == "3\n"
    assert "clfuse run: no kernel ran: NumPy computed what there was" in finished.stderr
    assert "clfuse run: counters after" in finished.stderr


def test_clfuse_itself_gets_numpy_when_the_script_lies_above_it():
    substitution = Substitution([str(REPOSITORY)])
    assert not substitution.is_users(str(REPOSITORY / "clfuse" / "api" / "ufunc.py"))
    assert substitution.is_users(str(REPOSITORY / "anything.py"))


def test_script_among_installed_packages_does_not_own_them(tmp_path):
    folder = tmp_path / "site-packages"
    write(folder, {"neighbour.py": "import numpy; name = numpy.__name__"})
    assert printed(folder, "import numpy, neighbour; print(numpy.__name__, neighbour.name)") == [
        "clfuse numpy"
    ]


def test_link_into_installed_packages_stays_installed(tmp_path):
    target = tmp_path / "site-packages"
    write(target, {"module.py": "import numpy; name = numpy.__name__"})
    project = tmp_path / "project"
    project.mkdir()
    (project / "linked").symlink_to(target)
    assert not Substitution([str(project)]).is_users(str(project / "linked" / "module.py"))


def test_pickles_of_numpy_arrays_can_be_read(tmp_path):
    source = """
        import base64, pickle
        array = pickle.loads(base64.b64decode("PICKLE"))
        print(array.sum(), type(array).__module__)
    """
    import base64
    import pickle

    import numpy

    pickled = base64.b64encode(pickle.dumps(numpy.arange(4))).decode()
    assert printed(tmp_path, source.replace("PICKLE", pickled)) == ["6 numpy"]


def test_substitution_ends_with_its_block(tmp_path):
    names = {"__name__": "somebody", "__file__": str(tmp_path / "somebody.py")}
    with Substitution([str(tmp_path)]):
        exec("import numpy; inside = numpy.__name__", names)
    exec("import numpy; outside = numpy.__name__", names)
    assert (names["inside"], names["outside"]) == ("clfuse", "numpy")


@pytest.mark.parametrize("name", [None, 3, "numpy", "numpy.somebody"])
def test_text_may_be_executed_under_any_name(tmp_path, name):
    names = {"__name__": name, "__file__": str(tmp_path / "somebody.py")}
    with Substitution([str(tmp_path)]):
        exec("import numpy; inside = numpy.__name__", names)
    assert names["inside"] == ("numpy" if name == "numpy.somebody" else "clfuse")


def test_tests_of_numpys_get_clfuse_where_they_are_run(tmp_path):
    folder = tmp_path / "numpy" / "tests"
    names = {"__name__": "numpy.tests.test_some", "__file__": str(folder / "test_some.py")}
    with Substitution([str(folder)]):
        exec("import numpy; inside = numpy.__name__", names)
    assert names["inside"] == "clfuse"


# -- as python would -------------------------------------------------------------------------------

SURROUNDINGS = """
    import os, sys
    print(sys.argv, __name__, __package__, __spec__ and __spec__.name)
    print(globals().get("__file__"), sys.path[0])
    print(sys.modules["__main__"].__dict__ is globals(), __builtins__ is sys.modules["builtins"])
"""


@pytest.mark.parametrize("arguments", [[], ["a", "-b", "--device", "c d"], ["--", "-m"]])
def test_script_sees_the_surroundings_that_python_gives_it(tmp_path, arguments):
    write(tmp_path, {"folder/script.py": SURROUNDINGS})
    command = [str(Path("folder", "script.py")), *arguments]
    assert clfuse_run(*command, cwd=tmp_path).stdout == python(*command, cwd=tmp_path).stdout


def test_module_sees_the_surroundings_that_python_gives_it(tmp_path):
    write(
        tmp_path,
        {
            "package/__init__.py": "",
            "package/module.py": SURROUNDINGS,
            "package/__main__.py": SURROUNDINGS,
        },
    )
    for name in ("package.module", "package"):
        command = ["-m", name, "x", "-m"]
        assert (
            clfuse_run(*command, cwd=tmp_path).stdout == python(*command, cwd=tmp_path).stdout != ""
        )


def test_code_and_standard_input_see_what_python_gives_them(tmp_path):
    source = textwrap.dedent(SURROUNDINGS)
    for command, text in ((["-c", source, "x", "-c"], None), (["-", "x"], source)):
        actual, expected = (
            run(*command, cwd=tmp_path, text=text).stdout for run in (clfuse_run, python)
        )
        assert actual == expected != ""


def test_folder_with_a_main_module_runs(tmp_path):
    write(
        tmp_path,
        {
            "folder/__main__.py": "import beside",
            "folder/beside.py": "import numpy; print(numpy.__name__)",
        },
    )
    assert clfuse_run("folder", cwd=tmp_path).stdout == "clfuse\n"


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit",
        "raise SystemExit(7)",
        "raise SystemExit('a message')",
        "import sys; sys.exit(True)",
        "import os; os._exit(5)",
        "1 / 0",
        "raise KeyboardInterrupt",
        "import atexit; atexit.register(print, 'at the end')",
        "def broken(:",
    ],
)
def test_exit_code_and_messages_are_those_of_python(tmp_path, source):
    write(tmp_path, {"script.py": source})
    actual, expected = clfuse_run("script.py", cwd=tmp_path), python("script.py", cwd=tmp_path)
    assert (actual.returncode, actual.stdout, actual.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )


HOOK = """
def hook(kind, error, traceback):
    print(kind, traceback.tb_lineno, traceback.tb_next)
sys.excepthook = hook
raise ValueError
"""
CHAIN = """
try:
    import broken
except ZeroDivisionError as error:
    raise ValueError('second') from error
"""


@pytest.mark.parametrize(
    "source",
    [
        HOOK,
        CHAIN,
        "import broken",
        "import importlib\nimportlib.import_module('broken')",
        "def f():\n    import broken\ntry:\n    f()\nexcept ZeroDivisionError:\n    int('x')",
    ],
)
def test_traceback_shows_the_programs_lines_only(tmp_path, source):
    write(tmp_path, {"script.py": source, "broken.py": "import string\n1 / 0\n"})
    actual, expected = clfuse_run("script.py", cwd=tmp_path), python("script.py", cwd=tmp_path)
    assert (actual.stdout, actual.stderr) == (expected.stdout, expected.stderr)
    assert actual.returncode == 1


def test_import_warning_of_a_module_shows_the_importing_line(tmp_path):
    files = {
        "script.py": "import old",
        "old.py": "import warnings; warnings.warn('gone soon', DeprecationWarning, stacklevel=2)",
    }
    write(tmp_path, files)
    expected = python("script.py", cwd=tmp_path).stderr
    assert "DeprecationWarning: gone soon" in expected
    assert clfuse_run("script.py", cwd=tmp_path).stderr == expected


def test_missing_script_and_module_are_said_to_be_missing(tmp_path):
    for command in (["nowhere.py"], ["-m", "nowhere"], ["-m", "nowhere.inside"]):
        actual, expected = clfuse_run(*command, cwd=tmp_path), python(*command, cwd=tmp_path)
        assert actual.returncode == expected.returncode
        assert "nowhere" in actual.stderr
        assert "Traceback" not in actual.stderr


@pytest.mark.parametrize("command", [[], ["-m"], ["-c"], ["--nonsense"], ["--device"]])
def test_wrong_command_line_is_explained(tmp_path, command):
    finished = clfuse_run(*command, cwd=tmp_path)
    assert finished.returncode == 2
    assert "usage: python -m clfuse run" in finished.stderr


def test_device_option_is_for_clfuse_and_not_for_the_program(tmp_path):
    source = "import os, sys; print(os.environ['CLFUSE_DEVICE'], sys.argv)"
    for option in (["--device", "pocl"], ["--device=pocl"]):
        assert clfuse_run(*option, "-c", source, "x", cwd=tmp_path).stdout == "pocl ['-c', 'x']\n"


def test_exact_random_option_is_clfuses_and_not_the_programs(tmp_path):
    source = "import os, sys; print(os.environ['CLFUSE_EXACT_RANDOM'], sys.argv)"
    for options in (["--exact-random", "--device", "cpu"], ["--device=cpu", "--exact-random"]):
        finished = clfuse_run(*options, "-c", source, "--exact-random", cwd=tmp_path)
        assert finished.stdout == "on ['-c', '--exact-random']\n"


def test_a_program_that_computes_nothing_touches_no_device(tmp_path):
    source = "import numpy, sys; print('pyopencl' in sys.modules, 'mako' in sys.modules)"
    assert printed(tmp_path, source) == ["False False"]


def test_numpys_modules_are_behind_ours_of_the_same_name() -> None:
    """A program may take names from ``np._core``; clfuse has a package that is called so."""
    ours, theirs = (
        {module.name for module in pkgutil.iter_modules(package.__path__)}
        for package in (clfuse, np)
    )
    both = ours & (theirs | set(dir(np)))
    assert "_core" in both
    for name in both:
        known = [key for key in dir(getattr(np, name)) if key[:2] != "__"]
        found = importlib.import_module(f"clfuse.{name}")
        assert [key for key in known if not hasattr(found, key)] == []
    served = Substitution()
    assert served.replacement("numpy._core.umath") is np._core.umath
    assert served.replacement("numpy._core.multiarray") is np._core.multiarray
