"""What the stock app must find in an answer (contracts: 01 §2): one missing key or null fails the whole answer."""

from typing import Any


class Maybe:
    """Absent or null is fine too."""

    def __init__(self, shape: Any):
        self.shape = shape


PERSON = {name: str for name in ("username", "email", "first_name", "last_name", "phone_number")} | {"id": int}
SIGNED_IN = {"jwt": str, "user": PERSON}
ME = PERSON | {"role": {"name": str, "description": str}}
FILE = {"id": int, "url": str}
COMPANY = {name: str for name in ("name", "email", "phone", "address", "category", "bio")}
SAVED_COMPANY = COMPANY | {
    "id": int,
    "logo": Maybe({name: str for name in ("url", "thumbnail", "small", "medium", "large")}),
}
OWN_COMPANY = {name: str for name in ("email", "name", "address", "category", "bio")} | {"id": int, "logo": FILE}
FORMATS = {name: {"url": str} for name in ("thumbnail", "small", "medium", "large")}
POSTING = {name: str for name in ("name", "description", "type", "environment", "status")}
ENTRY = {
    "id": int,
    "attributes": POSTING
    | {
        "company": {
            "data": {
                "id": int,
                "attributes": COMPANY | {"logo": {"data": {"attributes": {"url": str, "formats": FORMATS}}}},
            }
        }
    },
}
LISTED = {"data": [ENTRY]}
OWN_POSTINGS = [POSTING | {"id": int, "applications": [{"id": int, "status": str, "cv": FILE, "applicant": PERSON}]}]
OWN_APPLICATIONS = [{"id": int, "status": str, "cv": FILE, "job": POSTING | {"id": int, "company": OWN_COMPANY}}]
PUBLISHED = {"id": int, "name": str, "description": str}


def decode(value: Any, shape: Any, path: str = "answer") -> Any:
    """The value, if the app's decoder takes it."""
    if isinstance(shape, Maybe):
        return value if value is None else decode(value, shape.shape, path)
    if isinstance(shape, dict):
        assert isinstance(value, dict), f"{path} is {value!r}"
        for name, inner in shape.items():
            optional = isinstance(inner, Maybe)
            assert optional or name in value, f"{path}.{name} is missing"
            decode(value.get(name), inner, f"{path}.{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{path} is {value!r}"
        for number, item in enumerate(value):
            decode(item, shape[0], f"{path}[{number}]")
    else:
        # A bool is an int to Python, and not to the app.
        assert isinstance(value, shape) and not isinstance(value, bool), f"{path} is {value!r}"
    return value
