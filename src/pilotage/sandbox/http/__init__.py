"""The Kubernetes HTTP dialect: requests in, answers, tables and watches out."""
