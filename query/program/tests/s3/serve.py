"""Serves S3 by moto, in memory, until the standard input ends.

Prints its port. Then each line of the input is a command, which is answered by a line: `bucket NAME` creates a bucket, and `copy NAME DIRECTORY`
writes its objects as files. What a client may do depends on its access key: `denied` nothing, `reader` no change; of the requests of `unlucky` every
fifth is answered by an error of the server, before or after it was carried out."""

import itertools
import pathlib
import sys
import threading
from urllib.request import Request, urlopen

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

moto = DomainDispatcherApplication(create_backend_app)
number = itertools.count(1)


def error(status, code):
    return Response(f"<Error><Code>{code}</Code></Error>", status, content_type="application/xml")


def serve(environ, start_response):
    credentials = environ.get("HTTP_AUTHORIZATION", "")
    is_change = environ["REQUEST_METHOD"] not in ("GET", "HEAD")
    if "Credential=denied/" in credentials or ("Credential=reader/" in credentials and is_change):
        return error(403, "AccessDenied")(environ, start_response)
    if "Credential=unlucky/" in credentials:
        turn = next(number)
        if turn % 5 == 0:
            if turn % 2 == 0:
                # Carried out, and the answer is lost.
                b"".join(moto(environ, lambda *_: None))
            return error(503, "SlowDown")(environ, start_response)
    return moto(environ, start_response)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


server = make_server("127.0.0.1", 0, serve, threaded=True, request_handler=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
for line in sys.stdin:
    verb, bucket, *rest = line.split()
    if verb == "bucket":
        urlopen(Request(f"http://127.0.0.1:{server.server_port}/{bucket}", method="PUT")).read()
    else:
        for backend in s3_backends.values():
            for name, key in backend["aws"].buckets[bucket].keys.items():
                path = pathlib.Path(rest[0]) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(key.value)
    print("done", flush=True)
