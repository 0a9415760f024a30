"""Open http and https addresses; redirects from https to http are refused."""

from __future__ import annotations

import ssl
from http.client import HTTPException, HTTPMessage, HTTPResponse
from importlib.metadata import version
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from celstack.errors import RunFailedError
from celstack.text import describe_error

TIMEOUT_SECONDS = 30.0
"""How long a server may send nothing."""


class TransferError(Exception):
    """A failed transfer that may succeed when it is retried."""


class RangeNotSatisfiableError(Exception):
    """The server does not have the requested range (HTTP 416)."""


class _SafeRedirects(HTTPRedirectHandler):
    """Follow redirects, but only to http and https, and never from https to http."""

    def redirect_request(
        self,
        req: Request,
        fp: Any,
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> Request | None:
        here, there = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if there not in ("http", "https") or (here, there) == ("https", "http"):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(url: str, headers: dict[str, str]) -> HTTPResponse:
    """Request an address and return the response.

    Raises:
        TransferError: The connection or the server failed; retrying may help.
        RangeNotSatisfiableError: The server does not have the requested range.
        RunFailedError: Retrying would not help.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise RunFailedError(f"{url}: only http and https are supported")
    headers = {"User-Agent": f"celstack/{version('celstack')}", **headers}
    try:
        request = Request(url, headers=headers)  # noqa: S310 - the scheme was checked
        response: HTTPResponse = build_opener(_SafeRedirects).open(
            request, timeout=TIMEOUT_SECONDS
        )
    except HTTPError as error:
        with error:
            raise _classify(url, error) from None
    except URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            text = f"the certificate is not trusted ({error.reason.verify_message})"
            raise RunFailedError(f"{url}: {text}") from None
        reason = error.reason
        text = describe_error(reason) if isinstance(reason, BaseException) else str(reason)
        raise TransferError(f"no connection ({text})") from None
    except (OSError, HTTPException) as error:
        raise TransferError(f"no response ({describe_error(error)})") from None
    except ValueError as error:
        raise RunFailedError(f"{url}: not a valid address ({describe_error(error)})") from None
    return response


def read_chunk(response: HTTPResponse, max_bytes: int) -> bytes:
    """Return the next bytes of a response; none at its end."""
    try:
        return response.read(max_bytes)
    except (OSError, HTTPException) as error:
        raise TransferError(f"the transfer failed ({describe_error(error)})") from None


def _classify(url: str, error: HTTPError) -> Exception:
    status = f"{error.code} {' '.join(str(error.reason).split())}".strip()
    if error.code == 416:
        return RangeNotSatisfiableError(status)
    if error.code in (408, 425, 429) or error.code >= 500:
        return TransferError(f"the server responded {status}")
    if HTTPRedirectHandler.inf_msg in str(error.reason):
        return RunFailedError(f"{url}: redirect loop")
    if 300 <= error.code < 400:
        text = f"refused redirect to {error.headers.get('Location', 'nowhere')}"
        return RunFailedError(
            f"{url}: {text}: only redirects to https, or from http to http, are followed"
        )
    return RunFailedError(f"{url}: the server responded {status}")
