# malmoi in a container.  docker build -t malmoi .            (CPU)
#                         docker run --rm -v "$PWD:/data" malmoi run smoke
# With a GPU: an image with Python 3.11 or newer and CUDA, and torch's index for that CUDA:
#   docker build -t malmoi-cuda --build-arg BASE=nvidia/cuda:13.0.1-devel-ubuntu24.04 \
#     --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130 .
#   docker run --rm --gpus all --ipc host -v "$PWD:/data" malmoi-cuda doctor
ARG BASE=python:3.11-slim
FROM ${BASE}
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

# the CUDA images bring no Python; a compiler builds DeepSpeed's operators and torch.compile's kernels
RUN apt-get update \
 && apt-get install --yes --no-install-recommends g++ \
 && (command -v python3 > /dev/null || apt-get install --yes --no-install-recommends python3 python3-dev) \
 && (python3 -m venv --help > /dev/null && python3 -c "import ensurepip" || apt-get install --yes --no-install-recommends python3-venv) \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/malmoi
ENV PATH=/opt/malmoi/bin:$PATH PIP_NO_CACHE_DIR=1 PYTHONUTF8=1 HF_HOME=/data/.huggingface

# torch first: its layer is cached when the code changes, and its build for this machine comes from its own index
RUN pip install --index-url "$TORCH_INDEX" "torch>=2.11,<2.14"
COPY . /src
RUN pip install --constraint /src/constraints.txt "/src[train,deepspeed,kiwi]" && rm -rf /src

WORKDIR /data
ENTRYPOINT ["malmoi"]
CMD ["--help"]
