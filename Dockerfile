# A model behind HTTP, served by a user without rights:
#   docker build --tag episodica .
#   docker run --publish 8000:8000 --env EPISODICA_TOKEN --volume "$PWD/birds:/model" --user "$(id -u):$(id -g)" episodica
FROM python:3.11-slim

WORKDIR /opt/episodica
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY packaging/sbom.py packaging/
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt ".[web,photos]"

RUN useradd --uid 10001 --create-home episodica
USER 10001
ENV XDG_CACHE_HOME=/tmp/cache
WORKDIR /tmp
VOLUME /model
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["episodica", "serve", "/model", "--host", "0.0.0.0", "--port", "8000"]
