"""Shows a run on the screen and saves it as JSON and Markdown. Computes nothing itself."""
