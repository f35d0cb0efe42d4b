# SPDX-License-Identifier: MIT
# The default image of the sandboxes. Nothing in it is for the server's sake: the agent
# is put in at the start. A user 1000 with /workspace and /artifacts is what a client
# expects.
ARG BASE=debian:12-slim
FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
    bash bzip2 ca-certificates coreutils curl diffutils file findutils git grep gzip less \
    patch procps python3 python3-pip python3-venv sed tar unzip util-linux xz-utils zip \
 && rm -rf /var/lib/apt/lists/*
RUN useradd -m -u 1000 -U -s /bin/bash sandbox \
 && install -d -o 1000 -g 1000 /workspace /artifacts \
 && printf '[global]\nbreak-system-packages = true\n' >/etc/pip.conf
WORKDIR /workspace
CMD ["bash"]
