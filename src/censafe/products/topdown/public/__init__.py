"""TopDown's estimates from public noisy measurement files, whoever made them; nothing is measured or spent."""
