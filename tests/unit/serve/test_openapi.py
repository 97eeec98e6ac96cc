"""Requests made up from the description: none may end in a failure of the server."""

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
