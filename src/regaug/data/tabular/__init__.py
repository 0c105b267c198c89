"""The user's table: read, checked, encoded, and made anew."""
