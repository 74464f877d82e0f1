"""What an administrator does to a broker: one function and one command each."""
