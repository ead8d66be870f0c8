"""Telling others what happened: addresses, deliveries, signatures."""
