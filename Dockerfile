FROM python:3.11-slim
WORKDIR /app
# Nothing is installed but what the locks name, by its hash.
COPY requirements/base.lock requirements/otel.lock requirements/build.lock requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes \
    -r requirements/base.lock -r requirements/otel.lock -r requirements/build.lock
COPY pyproject.toml README.md ./
COPY migrations migrations
COPY ninfer_core ninfer_core
COPY service service
COPY worker worker
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && useradd --create-home --uid 10001 gate \
    && mkdir /data && chown gate /data && chmod 0700 /data
USER gate
# Compiles the kernels; on another model of processor they are compiled once more, there.
RUN ninfer-gate selfcheck --device cpu
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["ninfer-gate"]
