"""A block of a template under a name, for what a page shows twice: its heading, and the title made from it."""

from django import template

register = template.Library()


@register.simple_block_tag
def capture(content: str) -> str:
    """`{% capture as heading %}…{% endcapture %}`: what is inside, rendered once, as `heading`."""
    return content
