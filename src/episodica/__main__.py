"""`python -m episodica`: the command, where the environment's folder of commands is not on the path."""

from episodica.cli import main

if __name__ == "__main__":
    main()
