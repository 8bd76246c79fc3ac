"""Tokens as the services sign them (RFC 7519, HS256), to make such as they never would."""

import base64
import hashlib
import hmac
import json
from typing import Any


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def signed(claims: dict[str, Any], secret: str, algorithm: str = "HS256") -> str:
    head = encoded(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
    text = f"{head}.{encoded(json.dumps(claims).encode())}"
    code = hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()
    return f"{text}.{'' if algorithm == 'none' else encoded(code)}"
