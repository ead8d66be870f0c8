"""Conversations: importing, storing and finding them, and how a model reads them (wrappers, templates)."""
