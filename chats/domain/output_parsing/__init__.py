"""Understanding what a model wrote: text, segments and function calls (chat-wrappers.md section 14)."""
