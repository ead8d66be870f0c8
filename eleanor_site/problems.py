"""The family of exceptions with which services refuse. Each carries a sentence for the person who asked."""


class Refused(Exception):
    """The wish can't be fulfilled as things stand; the message says why and what to do. Views answer 422."""

    status = 422


class Conflict(Refused):
    """Somebody else changed the same thing meanwhile. Views answer 409 and show both sides."""

    status = 409
