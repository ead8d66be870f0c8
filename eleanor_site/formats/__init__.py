"""How dates and numbers are written where Django's own ways don't fit (look.md, product.md section 10)."""
