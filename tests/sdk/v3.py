"""alibabacloud-ecs20140526: signature V3, action and version in headers."""

import re

from alibabacloud_ecs20140526 import models
from alibabacloud_ecs20140526.client import Client
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
from alibabacloud_tea_openapi.models import Config
from darabonba.runtime import RuntimeOptions

from cloud import KEY, REGION, SECRET, Refusal


def snake(name):
    """`KMSKeyId` is `kmskey_id` and `DiskIds` is `disk_ids`, as this SDK writes them."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Sdk:
    """Calls by action name and parameters in the API's own names."""

    via = "v3"
    wrong_secret = "SignatureDoesNotMatch"

    def __init__(self, cloud, key=KEY, secret=SECRET, token=None, retries=False):
        self.cloud = cloud
        self.client = Client(
            Config(
                access_key_id=key,
                access_key_secret=secret,
                security_token=token,
                region_id=REGION,
                endpoint=cloud.address,
                protocol="HTTP",
            )
        )
        self.runtime = RuntimeOptions(
            autoretry=retries, max_attempts=3 if retries else 1, read_timeout=20000, connect_timeout=5000
        )
        # The response body: the SDK drops fields that its models do not have.
        self.body = None
        call_api = self.client.call_api

        def recorded(*arguments):
            response = call_api(*arguments)
            self.body = response["body"]
            return response

        self.client.call_api = recorded

    def response(self, action, parameters):
        """The response in the SDK's model."""
        request = getattr(models, f"{action}Request")()
        # from_map takes lists of plain objects, which the constructor does not.
        request = request.from_map(parameters)
        method = getattr(self.client, f"{snake(action)}_with_options")
        try:
            return method(request, self.runtime).body
        except AlibabaCloudException as error:
            status = getattr(error, "status_code", None)
            raise Refusal(
                status, error.code, error.message, getattr(error, "request_id", None), error
            ) from error

    def call(self, action, **parameters):
        return self.response(action, parameters).to_map()
