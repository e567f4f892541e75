"""Remedies: each reads how the zones stand and writes a new plan. None of them edits a count."""
