"""What a budget is, what it costs, and what it means: fractions, accounting, conversions, margins, attacks."""
