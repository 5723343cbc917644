"""Commands that read published counts alone: tables, cards and replicates of finished runs."""
