"""`opus …`: what a person types. Reading verbs stay plain; those that write run Dagster jobs (`runs`)."""
