"""What the programs that `test_standin_private` runs on upstream and on the stand-in print with."""


def case(name, f):
    """A line for each case; of an error its class alone."""
    try:
        print(name, f())
    except (Exception, SystemExit) as error:
        print(name, type(error).__name__)
