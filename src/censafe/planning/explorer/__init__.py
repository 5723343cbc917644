"""NO DATA. A page on which budgets and margins of error are tried out, made from the same plans as ``censafe plan``.

``sheets`` are what a product says about one configuration, ``page`` puts them and the scripts of ``page/`` into one file,
``serve`` shows that file on this machine.
"""
