"""What tests share: one module for each thing that more than one folder of tests needs."""
