"""Who the client is behind what really stands in front of an app: nginx, gunicorn, waitress, unix sockets."""
