"""What people read: tables of what was done and what it cost."""
