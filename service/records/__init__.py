"""What is remembered: tables and every query over them."""
