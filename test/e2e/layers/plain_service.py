"""A plain service, as anyone might write it: it knows nothing of Bulwark and passes `traceparent` on.

plain_service.py NAME PORT [NEXT]   calls to NEXT go where HTTP_PROXY says. One line of JSON a call on stdout.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

name, port = sys.argv[1], int(sys.argv[2])
following = sys.argv[3] if len(sys.argv) > 3 else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = parse_qs(urlparse(self.path).query)
        line = {
            "service": name,
            "path": self.path,
            "attempt": self.headers.get("Bulwark-Attempt"),
            "deadlineMs": self.headers.get("Bulwark-Deadline"),
            "traceparent": self.headers.get("traceparent"),
        }
        print(json.dumps(line), flush=True)
        if name in asked.get("pause", []):
            time.sleep(0.15)
        status, body = self.below(asked) if following else (200, b"fine")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def below(self, asked):
        trace = self.headers.get("traceparent")
        forgets = name in asked.get("forgets", [])
        headers = {"traceparent": trace} if trace and not forgets else {}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(f"http://{following}{self.path}", headers=headers), timeout=20
            ) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
print("ready", flush=True)
server.serve_forever()
