"""From a repository, a dataset or a session to audited tasks."""
