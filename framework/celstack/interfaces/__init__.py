"""The interfaces: what each kind of part promises."""
