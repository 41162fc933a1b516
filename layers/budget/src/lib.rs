//! Admission and retry budgets for tower services.
