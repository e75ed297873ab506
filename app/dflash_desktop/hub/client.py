"""The HTTP client that huggingface_hub and we share. Imported when the first question is asked: it takes its time."""

from __future__ import annotations

from typing import Any

import httpx2

from dflash_desktop.hub.failures import problem_of, status_problem

_RETRIED = (408, 429, 500, 502, 503, 504)


class HubClient(httpx2.Client):
    """Failures that pass come out as HubProblem at once.

    huggingface_hub 2.4 tries such requests again by itself, up to 23 seconds, and cannot be stopped meanwhile. Whether
    and when to try again is for us to say; a kind of error that it does not know it leaves alone. Drop this when its
    `list_models` takes the number of tries.
    """

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As httpx2, but see above. Raises HubProblem."""
        host = request.url.netloc.decode("ascii", "replace")
        try:
            response = super().send(request, **options)
        except httpx2.HTTPError as error:
            raise problem_of(error, host) from error
        if response.status_code in _RETRIED:
            problem = status_problem(response, host)
            response.close()
            raise problem
        return response
