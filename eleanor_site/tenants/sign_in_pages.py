"""Asking for a sign-in in the three situations in which it can be missing (see `access.ask_to_sign_in`)."""

from __future__ import annotations

from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from eleanor_site.tenants.forms import SignInForm

HELD_FORM = "held-form"
HELD_LIMIT = 200_000
# Long enough to find a password; a form kept for longer belongs in the browser's own storage.
HELD_SECONDS = 3600


def hold_posted_form(request: HttpRequest) -> HttpResponse:
    """The sign-in page, with the posted fields sealed inside, so that they can be sent again afterwards."""
    fields = [(k, v) for k, values in request.POST.lists() if k != "csrfmiddlewaretoken" for v in values]
    held = ""
    if sum(len(k) + len(str(v)) for k, v in fields) <= HELD_LIMIT:
        held = signing.dumps({"path": request.get_full_path(), "fields": fields}, salt=HELD_FORM, compress=True)
    return render(request, "tenants/sign_in.html", {"form": SignInForm(), "held": held, "lost": not held}, status=401)


def open_held_form(held: str) -> tuple[str, list[tuple[str, str]]] | None:
    """Path and fields of a sealed form; None when it is too old or was changed."""
    try:
        found = signing.loads(held, salt=HELD_FORM, max_age=HELD_SECONDS)
    except signing.BadSignature:
        return None
    return str(found["path"]), [(str(k), str(v)) for k, v in found["fields"]]


def sign_in_dialog(request: HttpRequest) -> HttpResponse:
    """A sign-in dialog that opens over the page; the page's fields stay as they are."""
    response = render(request, "tenants/sign_in.html#dialog", {"form": SignInForm()}, status=401)
    response["HX-Retarget"] = "#sign-in-place"
    response["HX-Reswap"] = "innerHTML"
    return response
