"""What the mail catcher has kept: one file a mail."""

import email
import email.policy
import re
from email.message import EmailMessage
from pathlib import Path

from waiting import until


class Inbox:
    """The mails to one address."""

    def __init__(self, folder: Path, address: str):
        self.folder = folder
        self.address = address

    def mails(self) -> list[EmailMessage]:
        """All so far, oldest first."""
        files = sorted(path for path in self.folder.glob("*.eml") if not path.name.startswith("."))
        mails = [email.message_from_bytes(path.read_bytes(), policy=email.policy.default) for path in files]
        return [mail for mail in mails if self.address in str(mail["to"])]

    def wait(self, subject_or_text: str) -> EmailMessage:
        """The first mail with these words in its subject or its text, as soon as it is there."""

        def look() -> EmailMessage | None:
            return next((mail for mail in self.mails() if subject_or_text in str(mail["subject"]) + text(mail)), None)

        return until(look, f"a mail to {self.address} with {subject_or_text!r}")


def text(mail: EmailMessage) -> str:
    """The plain text of a mail."""
    part = mail.get_body(preferencelist=("plain",))
    return part.get_content() if part else ""


def one_click(mail: EmailMessage) -> str:
    """The https or http address of List-Unsubscribe, which RFC 8058 lets a mail program POST to."""
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    found = re.findall(r"<(https?://[^>]+)>", str(mail["List-Unsubscribe"]))
    assert found, mail["List-Unsubscribe"]
    return found[0]
