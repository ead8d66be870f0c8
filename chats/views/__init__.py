"""Pages: each view reads input, asks one query or calls one service, and answers."""
