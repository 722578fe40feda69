"""What an operator watches: metrics, scraped as Prometheus does it."""
