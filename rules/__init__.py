"""What is decided about conversations: rules, releases, replays, the history of nudges. Stands on `chats`."""
