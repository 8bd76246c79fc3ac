"""An S3 on this machine that checks signatures: moto, with one user and one bucket.

Runs as a program, too: prints where it is and its keys as one line of JSON, and serves until its input ends.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import Any

# Before moto is imported. Every request must be signed by somebody who may do what it asks for.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"

import boto3  # noqa: E402
import requests  # noqa: E402
from botocore.config import Config  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

REGION = "eu-central-1"
BUCKET = "martlet"
UNSIGNED_ACTIONS = 3  # To make the user, who cannot sign before.


@dataclass
class Bucket:
    endpoint: str
    region: str
    bucket: str
    access_key: str
    secret_key: str

    def client(self) -> Any:
        """A third party's client of it."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(s3={"addressing_style": "path"}),
        )

    def keys(self) -> dict[str, int]:
        """All objects and their sizes."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return {each["Key"]: each["Size"] for page in pages for each in page.get("Contents", [])}

    def uploads(self) -> list[str]:
        """Keys of uploads in parts that have not ended."""
        return [each["Key"] for each in self.client().list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])]


class ObjectStore:
    def __init__(self) -> None:
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        host, port = self.server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        requests.post(f"{endpoint}/moto-api/reset-auth", data=str(UNSIGNED_ACTIONS), timeout=10).raise_for_status()
        none = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
        iam = boto3.client("iam", endpoint_url=endpoint, region_name="us-east-1", **none)
        iam.create_user(UserName="martlet")
        key = iam.create_access_key(UserName="martlet")["AccessKey"]
        # Just what the documentation asks for.
        actions = ["PutObject", "GetObject", "DeleteObject", "ListBucket", "CreateBucket", "AbortMultipartUpload"]
        actions += ["ListBucketMultipartUploads"]
        allowed = {"Effect": "Allow", "Action": [f"s3:{action}" for action in actions], "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName="martlet", PolicyName="store", PolicyDocument=policy)
        self.bucket = Bucket(endpoint, REGION, BUCKET, key["AccessKeyId"], key["SecretAccessKey"])
        self.bucket.client().create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
        )

    def stop(self) -> None:
        # What moto holds is the process's, and the next one in it begins with nothing.
        requests.post(f"{self.bucket.endpoint}/moto-api/reset", timeout=10).raise_for_status()
        self.server.stop()


if __name__ == "__main__":
    store = ObjectStore()
    print(json.dumps(asdict(store.bucket)), flush=True)
    sys.stdin.read()
