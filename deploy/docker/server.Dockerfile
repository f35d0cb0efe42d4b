# SPDX-License-Identifier: MIT
# The server with its nginx (docs/docker.md): make docker-build [BASE=image], or
#   docker build -t mcp-sandboxd -f deploy/docker/server.Dockerfile .
# BASE: Debian 12, 13 or Ubuntu 24.04.
ARG BASE=debian:12-slim

FROM ${BASE} AS build
WORKDIR /src
COPY scripts/bootstrap scripts/lib.sh scripts/
RUN scripts/bootstrap build
COPY Makefile ./
COPY fcgi fcgi
COPY store store
RUN make -s -j"$(nproc)" build
COPY . .
# With the names of the packages whose libraries it needs: they differ by release.
RUN make -s install DESTDIR=/out \
 && ldd /out/usr/lib/mcp-sandboxd/mcp-sandboxd | sed -n 's|.* => .*/\([^ ]*\) .*|*/\1|p' \
    | xargs dpkg -S | cut -d: -f1 | sort -u >/libraries

FROM ${BASE}
# The user has a fixed number: volumes outlive images. Packages start nothing here.
RUN groupadd -g 10001 mcp-sandboxd \
 && useradd -u 10001 -g 10001 -M -d /nonexistent -s /usr/sbin/nologin mcp-sandboxd \
 && printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d \
 && apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl nginx \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY --from=build /libraries /usr/share/doc/mcp-sandboxd/libraries
RUN apt-get update \
 && xargs apt-get install -y --no-install-recommends </usr/share/doc/mcp-sandboxd/libraries \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
 && install -d -o 10001 -g 10001 /var/lib/mcp-sandboxd
COPY --from=build /out /
COPY deploy/docker/entrypoint /usr/lib/mcp-sandboxd/

WORKDIR /usr/lib/mcp-sandboxd
# The sockets are in the volume, so that a second container of it (stdio) finds them.
ENV DATA_DIR=/var/lib/mcp-sandboxd RUN_DIR=/var/lib/mcp-sandboxd/run \
    LISTEN_ADDRESS=0.0.0.0 SANDBOX_BACKEND=docker
VOLUME /var/lib/mcp-sandboxd
EXPOSE 8080
# Ready means that the engine answers and the sandboxes' image is there, which the first
# start may have to build.
HEALTHCHECK --interval=10s --timeout=6s --start-period=10m \
    CMD curl -fsS --max-time 5 "http://127.0.0.1:${PORT:-8080}/readyz"
ENTRYPOINT ["/usr/lib/mcp-sandboxd/entrypoint"]
CMD ["serve"]
