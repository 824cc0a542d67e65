"""aliyun-python-sdk-ecs: signature V1, all in the query."""

import importlib
import json
import warnings

from aliyunsdkcore.acs_exception.exceptions import ClientException, ServerException
from aliyunsdkcore.auth.credentials import StsTokenCredential
from aliyunsdkcore.client import AcsClient

from cloud import KEY, REGION, SECRET, Refusal


class Sdk:
    """Calls by action name and parameters in the API's own names."""

    via = "v1"
    # This SDK compares the server's string to sign with its own, and says whose fault it is.
    wrong_secret = "InvalidAccessKeySecret"

    def __init__(self, cloud, key=KEY, secret=SECRET, token=None, retries=False):
        credential = StsTokenCredential(key, secret, token) if token else None
        self.cloud = cloud
        self.client = AcsClient(
            None if token else key,
            None if token else secret,
            REGION,
            auto_retry=retries,
            port=cloud.port,
            timeout=20,
            credential=credential,
        )

    def request(self, action, parameters):
        module = importlib.import_module(f"aliyunsdkecs.request.v20140526.{action}Request")
        request = getattr(module, f"{action}Request")()
        request.set_endpoint("127.0.0.1")
        request.set_protocol_type("http")
        for name, value in parameters.items():
            if name == "RegionId":
                request.add_query_param(name, value)
                continue
            setter = getattr(request, f"set_{name}", None) or getattr(request, f"set_{name}s")
            setter(value)
        return request

    def call(self, action, **parameters):
        try:
            body = self.client.do_action_with_exception(self.request(action, parameters))
        except ServerException as error:
            raise Refusal(
                error.get_http_status(),
                error.get_error_code(),
                error.get_error_msg(),
                error.get_request_id(),
                error,
            ) from error
        except ClientException as error:
            raise Refusal(None, error.get_error_code(), error.get_error_msg(), None, error) from error
        return json.loads(body)

    def raw(self, action, **parameters):
        """The body as it comes when the caller names no format."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return self.client.do_action(self.request(action, parameters))
