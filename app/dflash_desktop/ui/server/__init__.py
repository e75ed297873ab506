"""The serve page: the server's socket, the requests it answers, who may call."""
