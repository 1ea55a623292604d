FROM python:3.11-slim
WORKDIR /app
COPY requirements/base.lock requirements/build.lock requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/base.lock -r requirements/build.lock
COPY pyproject.toml README.md ./
COPY migrations migrations
COPY ninfer_core ninfer_core
COPY service service
COPY worker worker
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && useradd --create-home gate && mkdir /data && chown gate /data
USER gate
# Compiles the kernels; on another model of processor they are compiled once more, there.
RUN ninfer-gate selfcheck --device cpu
VOLUME /data
ENTRYPOINT ["ninfer-gate"]
