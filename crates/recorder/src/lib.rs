//! Records bellpepper circuits into their compiled form.
