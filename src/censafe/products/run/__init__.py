"""The one runner of all products: open the records, pay, measure every part once, publish, or resume."""
