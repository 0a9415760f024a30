"""Open an address of the web: http and https alone, and never from the second to the first."""

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

TIMEOUT = 30.0
"""Seconds of silence after which a server is given up."""


class BrokenOffError(Exception):
    """A transfer that may go better when it is tried again."""


class OutOfRangeError(Exception):
    """A server that does not have the piece it was asked for."""


class _Redirects(HTTPRedirectHandler):
    """Follow redirects, but to no place where less is promised."""

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
    """Ask for an address, and return an answer that has content."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise RunFailedError(f"{url}: only http and https are fetched")
    headers = {"User-Agent": f"celstack/{version('celstack')}", **headers}
    try:
        request = Request(url, headers=headers)  # noqa: S310 - the scheme was checked
        answer: HTTPResponse = build_opener(_Redirects).open(request, timeout=TIMEOUT)
    except HTTPError as error:
        with error:
            raise _judged(url, error) from None
    except URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            text = f"its certificate is not trusted ({error.reason.verify_message})"
            raise RunFailedError(f"{url}: {text}") from None
        reason = error.reason
        text = describe_error(reason) if isinstance(reason, BaseException) else str(reason)
        raise BrokenOffError(f"no connection ({text})") from None
    except (OSError, HTTPException) as error:
        raise BrokenOffError(f"no answer ({describe_error(error)})") from None
    except ValueError as error:
        raise RunFailedError(f"{url}: not a sound address ({describe_error(error)})") from None
    return answer


def read_some(answer: HTTPResponse, most: int) -> bytes:
    """Return the next bytes of an answer, none at its end."""
    try:
        return answer.read(most)
    except (OSError, HTTPException) as error:
        raise BrokenOffError(f"the transfer broke off ({describe_error(error)})") from None


def _judged(url: str, error: HTTPError) -> Exception:
    said = f"{error.code} {' '.join(str(error.reason).split())}".strip()
    if error.code == 416:
        return OutOfRangeError(said)
    if error.code in (408, 425, 429) or error.code >= 500:
        return BrokenOffError(f"the server says {said}")
    if HTTPRedirectHandler.inf_msg in str(error.reason):
        return RunFailedError(f"{url}: redirects in a circle")
    if 300 <= error.code < 400:
        text = f"redirects to {error.headers.get('Location', 'nowhere')}, which is refused"
        return RunFailedError(f"{url}: {text}: only https, or http to http, is followed")
    return RunFailedError(f"{url}: the server says {said}")
