"""What people meet: the command line now, the service later. It builds on `ninfer_core` and never the other way."""
