"""Counting an upload while it comes in, since neither Django nor the server has a limit of its own."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload


class CountingUploadHandler(FileUploadHandler):
    """Ends the request's upload as soon as all its files together pass the limit. Runs before the storing handler."""

    received = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self.received += len(raw_data)
        if self.received > settings.UPLOAD_LIMIT:
            raise StopUpload(connection_reset=True)
        return raw_data

    def file_complete(self, file_size: int) -> UploadedFile[Any] | None:
        return None
