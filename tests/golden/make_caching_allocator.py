#!/usr/bin/env python3
"""Statistics of PyTorch's CUDA caching allocator over random calls, for tests/unit/allocator/pytorch_test.cpp.

    python3 -m venv golden && golden/bin/pip install torch     # any build for CUDA; made with 2.15.0+cu132
    golden/bin/python tests/golden/make_caching_allocator.py --cuda=/usr/local/cuda/include

Needs no GPU: PyTorch's own library runs on a CUDA runtime that only counts (caching_allocator/fake_*), with headers of the
CUDA toolkit. Writes caching_allocator.csv beside this script.
"""
import argparse
import csv
import os
import pathlib
import subprocess
import tempfile

import torch

HERE = pathlib.Path(__file__).parent
SOURCES = HERE / "caching_allocator"
SETTINGS = [  # PYTORCH_CUDA_ALLOC_CONF, memory fraction
    ("", 0),
    ("max_split_size_mb:20", 0),
    ("max_split_size_mb:21,max_non_split_rounding_mb:40", 0),
    ("max_split_size_mb:64", 0),
    ("expandable_segments:True", 0),
    ("roundup_power2_divisions:4", 0),
    ("roundup_power2_divisions:[4:8,16:2,32:0,>:4]", 0),
    ("large_segment_size_mb:12", 0),
    ("", 0.7),
    ("garbage_collection_threshold:0.6", 0.9),
    ("garbage_collection_threshold:0.5,max_split_size_mb:32", 0.99),
    ("garbage_collection_threshold:0.5", 1),
    ("expandable_segments:True,roundup_power2_divisions:2", 0.8),
    ("expandable_segments:True,max_split_size_mb:50", 0),
    ("expandable_segments:True,large_segment_size_mb:16", 0),
]
COLUMNS = ("requested,requested_peak,allocated,allocated_peak,active,active_peak,reserved,reserved_peak,inactive_split,"
           "retries,ooms,device_allocs,device_frees,syncs,now").split(",")
SEEDS, CALLS, EVERY = (1, 2, 3), 4000, 250


def build(folder, cuda):
    library = pathlib.Path(torch.__file__).parent
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    soname = f"libcudart.so.{torch.version.cuda.split('.')[0]}"
    versions = folder / "versions"
    versions.write_text(soname + " { global: *; };\n")
    run = lambda *words: subprocess.run([str(word) for word in words], check=True)
    run("gcc", "-c", "-fPIC", SOURCES / "fake_cuda_rest.c", "-o", folder / "rest.o")
    run("gcc", "-shared", "-fPIC", SOURCES / "fake_nvml.c", "-o", folder / "libnvidia-ml.so.1")
    run("g++", "-std=c++20", "-shared", "-fPIC", f"-I{cuda}", SOURCES / "fake_cuda_runtime.cpp", folder / "rest.o",
        f"-Wl,--version-script={versions}", f"-Wl,-soname,{soname}", "-o", folder / soname)
    run("g++", "-std=c++20", abi, f"-I{library}/include", f"-I{cuda}", SOURCES / "drive_cuda_allocator.cpp", folder / soname,
        library / "lib/libc10_cuda.so", library / "lib/libc10.so", "-Wl,--allow-shlib-undefined",
        f"-Wl,-rpath,{library}/lib", "-o", folder / "drive")


def numbers(folder, settings, fraction, seed):
    environment = dict(os.environ, LD_LIBRARY_PATH=str(folder), PYTORCH_CUDA_ALLOC_CONF=settings)
    made = subprocess.run([folder / "drive", str(fraction), str(seed), str(CALLS), str(EVERY)], env=environment, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [line.split(",") for line in made.stdout.split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", default="/usr/local/cuda/include", help="folder of cuda.h")
    cuda = parser.parse_args().cuda
    with tempfile.TemporaryDirectory() as name, open(HERE / "caching_allocator.csv", "w", newline="") as file:
        folder = pathlib.Path(name)
        build(folder, cuda)
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["settings", "fraction", "seed", "call", *COLUMNS])
        for settings, fraction in SETTINGS:
            for seed in SEEDS:
                for row in numbers(folder, settings, fraction, seed):
                    out.writerow([settings, fraction, seed, *row])


main()
