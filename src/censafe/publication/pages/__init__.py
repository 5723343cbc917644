"""Self-contained HTML pages: escaped markup, and questions with their answers, figures and tables."""
