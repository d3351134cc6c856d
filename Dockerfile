# The MCP server in a container; docs/install.md has the command that a client runs.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE requirements-dev.txt ./
COPY man man
COPY mimo mimo
# Such as [postgres], for a server with a shared index.
ARG EXTRAS=
# The locked versions; pip takes no hashes beside a folder.
RUN sed -e '/--hash/d' -e 's/ [\\]$//' requirements-dev.txt > locked.txt \
    && python -m venv --without-pip /opt/mind \
    && python -m pip --python /opt/mind/bin/python install --no-cache-dir --constraint locked.txt ".$EXTRAS"

FROM python:3.13-slim
LABEL org.opencontainers.image.title="mind" \
      org.opencontainers.image.description="Long-term memory for coding agents and the people who work with them" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.modelcontextprotocol.server.name="io.github.OWNER/mind"
# Trust follows git, so the program needs it; its version is that of the base image.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 mind \
    && install --directory --owner=mind --group=mind --mode=0700 /home/mind/.mind
COPY --from=build /opt/mind /opt/mind
ENV PATH=/opt/mind/bin:$PATH \
    MIND_HOME=/home/mind/.mind \
    PYTHONUTF8=1
USER 1000
WORKDIR /project
ENTRYPOINT ["mind"]
CMD ["mcp"]
