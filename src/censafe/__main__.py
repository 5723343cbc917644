"""``python -m censafe``: the command line where the script is not on the path."""

from censafe.cli import main

if __name__ == "__main__":
    main()
