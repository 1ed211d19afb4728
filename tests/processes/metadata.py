"""A metadata server of Google Cloud on loopback, for GCE_METADATA_IP."""

import contextlib
import http.server
import threading
from collections.abc import Iterator, Mapping


@contextlib.contextmanager
def metadata_server(attributes: Mapping[str, str]) -> Iterator[str]:
    """HOST:PORT of a server that has these attributes of an instance in the block; 404 for any other."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            value = attributes.get(self.path.removeprefix("/computeMetadata/v1/instance/attributes/"))
            self.send_response(404 if value is None or self.headers["Metadata-Flavor"] != "Google" else 200)
            self.end_headers()
            self.wfile.write((value or "").encode())

        def log_message(self, format: str, *rest: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
